# SPDX-License-Identifier: Apache-2.0
"""What the service has: its models, training runs and checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import parse_qs, unquote

from newskills.base.errors import DataError
from newskills.base.http.messages import HttpRequest, Response, json_response, not_found, wrong_method
from newskills.base.records import Row
from newskills_tinker.server.checkpoints import KINDS, Address, Checkpoints
from newskills_tinker.server.engine import BaseModel

LIMIT = 100


class StorageListing:
    """Answers about what lies on the disk."""

    def __init__(self, bases: Iterable[BaseModel], saved: Checkpoints) -> None:
        self._bases, self._saved = list({base.name: base for base in bases}.values()), saved

    def answer(self, request: HttpRequest, parts: Sequence[str]) -> Response:
        """Answer a request; `parts` are the words of its path. Raises UnknownNameError, DataError."""
        match [unquote(part) for part in parts]:
            case ["get_server_capabilities"]:
                return wrong_method(request, "GET") or json_response({"supported_models": self._models()})
            case ["training_runs"]:
                runs = self._saved.run_ids()
                return wrong_method(request, "GET") or json_response(self._page(request, "training_runs", runs))
            case ["training_runs", run_id]:
                return wrong_method(request, "GET") or json_response(self._run(run_id))
            case ["training_runs", run_id, "checkpoints"]:
                self._saved.read_run(run_id)
                checkpoints = [self._checkpoint(checkpoint) for checkpoint in self._saved.list_checkpoints(run_id)]
                return wrong_method(request, "GET") or json_response({"checkpoints": checkpoints})
            case ["training_runs", run_id, "checkpoints", kind, name] if kind in KINDS:
                self._saved.read_run(run_id)
                if request.method == "DELETE":
                    self._saved.remove(Address(run_id, kind, name))
                    return json_response({})
                return wrong_method(request, "DELETE") or not_found(request)
            case ["checkpoints"]:
                every = [
                    str(checkpoint)
                    for run_id in self._saved.run_ids()
                    for checkpoint in self._saved.list_checkpoints(run_id)
                ]
                return wrong_method(request, "GET") or json_response(self._page(request, "checkpoints", every))
        return not_found(request)

    def _models(self) -> list[Row]:
        return [
            {
                "model_name": base.name,
                "max_context_length": base.shape.max_position_embeddings,
                "trainable": True,
                "sampleable": True,
            }
            for base in self._bases
        ]

    def _page(self, request: HttpRequest, what: str, names: Sequence[str]) -> Row:
        query = parse_qs(request.query)
        try:
            limit, offset = (
                int(query.get(name, [str(usual)])[0]) for name, usual in (("limit", LIMIT), ("offset", 0))
            )
        except ValueError as error:
            raise DataError("limit and offset must be whole numbers.") from error
        describe = self._run if what == "training_runs" else self._named_checkpoint
        rows = [describe(name) for name in names[max(0, offset) :][: max(0, limit)]]
        return {what: rows, "cursor": {"offset": offset, "limit": limit, "total_count": len(names)}}

    def _named_checkpoint(self, path: str) -> Row:
        return self._checkpoint(Address(*path.removeprefix("tinker://").split("/")))

    def _run(self, run_id: str) -> Row:
        run = self._saved.read_run(run_id)
        checkpoints = self._saved.list_checkpoints(run_id)
        last = {checkpoint.kind: self._checkpoint(checkpoint) for checkpoint in checkpoints}
        times = [run.created, *(self._saved.read_info(checkpoint).created for checkpoint in checkpoints)]
        return {
            "training_run_id": run_id,
            "base_model": run.base_model,
            "model_owner": "local",
            "is_lora": True,
            "lora_rank": run.rank,
            "last_request_time": max(times),
            "last_checkpoint": last.get("weights"),
            "last_sampler_checkpoint": last.get("sampler_weights"),
            "user_metadata": {name: str(value) for name, value in (run.user_metadata or {}).items()},
        }

    def _checkpoint(self, address: Address) -> Row:
        about = self._saved.read_info(address)
        return {
            "checkpoint_id": f"{address.kind}/{address.name}",
            "checkpoint_type": KINDS[address.kind],
            "time": about.created,
            "tinker_path": str(address),
            "size_bytes": self._saved.size(address),
            "public": False,
            "user_metadata": about.user_metadata,
            "expires_at": about.expires,
        }
