# SPDX-License-Identifier: Apache-2.0
"""The Tinker API over HTTP: sessions, models, samplers, and the promises of their answers.

Requests are those that the public client (PyPI: tinker, 0.38) sends. What takes long is answered with a promise that
`retrieve_future` waits for. Requests of one model are done in the order of their numbers, each once, also where a
client sends one again. Errors are `{"error": sentence}`, with a `category` in place of a promised answer.
"""

from __future__ import annotations

import hmac
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, NewskillsError, StorageError, UnknownNameError
from newskills.base.http.access import BROWSER_HEADERS
from newskills.base.http.messages import (
    HttpRequest,
    Response,
    error_response,
    json_response,
    not_found,
    wrong_method,
)
from newskills.base.records import Row
from newskills.train.backends.cpu.llama import LoraConfig
from newskills_tinker.server import checkpoints as ck
from newskills_tinker.server import wire
from newskills_tinker.server.bodies import body_of
from newskills_tinker.server.checkpoints import Address, Checkpoints, StoredRun
from newskills_tinker.server.downloads import PREFIX, SignedDownloads
from newskills_tinker.server.engine import BaseModel, ModelEngine, Sampler
from newskills_tinker.server.listing import StorageListing
from newskills_tinker.server.queue import Answer, Queue, QueuedCall, RefusedRequest, RequestQueue

API = "/api/v1/"
WAIT = 30.0
"""Seconds that `retrieve_future` waits; the client gives it 45."""
SNAPSHOTS = 8
"""Unsaved weights of a model that are kept to sample from: the latest so many."""
ALPHA = LoraConfig().alpha
SILENT = 3600.0
"""Seconds without a sign of life after which a session is over; clients give one every ten."""
PLAIN = LoraConfig(rank=1, alpha=0.0)
"""Pairs that change nothing."""


class TrainedModel(Struct, kw_only=True, eq=False):
    """One that is being trained."""

    run: StoredRun
    base: BaseModel
    line: RequestQueue
    snapshots: list[str] = msgspec.field(default_factory=list)


class ClientSession(Struct, kw_only=True, eq=False):
    """What a client has open; `finished` ones take nothing more."""

    user_metadata: Row | None = None
    display_name: str | None = None
    models: list[str] = msgspec.field(default_factory=list)
    samplers: list[str] = msgspec.field(default_factory=list)
    clones: int = 0
    seen: float = 0.0
    finished: bool = False


class TinkerService:
    """Answers requests. `bases` are the models that can be trained and asked, by each of their names."""

    def __init__(
        self,
        bases: dict[str, BaseModel],
        engine: ModelEngine,
        queue: Queue,
        saved: Checkpoints,
        *,
        token: str = "",
    ) -> None:
        self._bases, self._engine, self._queue, self._saved, self._token = bases, engine, queue, saved, token
        self._downloads = SignedDownloads(saved)
        self._listing = StorageListing(bases.values(), saved)
        self._sessions: dict[str, ClientSession] = {}
        self._models: dict[str, TrainedModel] = {}
        self._samplers: dict[str, Sampler] = {}
        self._posts: dict[str, Callable[[bytes], Row]] = {
            "client/config": lambda _: {"pjwt_auth_enabled": False, "sample_use_retrieve_futures": False},
            "client/dynamic_config": lambda _: {"sample_cancel_enabled": True},
            "telemetry": lambda _: {"status": "accepted"},
            "create_session": self._create_session,
            "session_heartbeat": self._heartbeat,
            "create_model": self._create_model,
            "get_info": self._get_info,
            "optim_step": self._optim_step,
            "save_weights": self._save_weights,
            "save_weights_for_sampler": self._save_for_sampler,
            "save_weights_external": self._save_external,
            "load_weights": self._load_weights,
            "unload_model": self._unload_model,
            "create_sampling_session": self._create_sampler,
            "join_sampling_session": self._join_sampler,
            "asample": self._sample,
            "cancel_future": self._cancel,
            "weights_info": self._weights_info,
        }

    async def answer(self, request: HttpRequest) -> Response:
        path = request.path.removeprefix(API)
        if path == "healthz":
            return wrong_method(request, "GET") or json_response({"status": "ok"})
        signed = request.path.startswith(PREFIX)
        if not signed and (refused := self._stranger(request)) is not None:
            return refused
        if path == request.path:
            return not_found(request)
        try:
            if signed:
                return wrong_method(request, "GET") or self._downloads.file(request)
            return await self._route(request, path)
        except UnknownNameError as error:
            return error_response(404, str(error))
        except StorageError as error:
            return error_response(507, str(error))
        except NewskillsError as error:
            return error_response(400, str(error))

    async def _route(self, request: HttpRequest, path: str) -> Response:
        if path == "retrieve_future":
            return wrong_method(request, "POST") or await self._retrieve(request)
        if path in ("forward_backward", "forward"):
            refused = wrong_method(request, "POST")
            return refused or json_response(self._pass(body_of(request), only=path == "forward"))
        if path in self._posts:
            if (refused := wrong_method(request, "POST")) is not None:
                return refused
            return json_response(self._posts[path](body_of(request)))
        match path.split("/"):
            case ["sessions", name, "finish"]:
                return wrong_method(request, "POST") or json_response(self._finish(name))
            case ["sessions", name]:
                return wrong_method(request, "GET") or json_response(self._opened(self._session(name)))
            case ["samplers", name]:
                return wrong_method(request, "GET") or json_response(self._asked(self._known_sampler(name)))
            case ["training_runs", run_id, "checkpoints", "external_weights", name, "external_weights_urls"]:
                urls = self._downloads.urls(request, Address(unquote(run_id), "external_weights", unquote(name)))
                return wrong_method(request, "GET") or json_response(urls)
            case parts:
                return self._listing.answer(request, parts)

    def _stranger(self, request: HttpRequest) -> Response | None:
        key = request.headers.get("x-api-key", "")
        if self._token and not hmac.compare_digest(key.encode(), self._token.encode()):
            return error_response(401, "This service needs its key: set TINKER_API_KEY.")
        if any(name in request.headers for name in BROWSER_HEADERS):
            # Any page that is open in a browser on this machine can post to its loopback addresses.
            return error_response(403, "Web pages may not use this service.")
        return None

    # Sessions and promises

    def _create_session(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.SessionRequest)
        silent = time.monotonic() - SILENT
        for left in [
            name for name, session in self._sessions.items() if session.seen < silent and not session.finished
        ]:
            self._finish(left)
        name = str(uuid.uuid4())
        self._sessions[name] = ClientSession(
            user_metadata=message.user_metadata, display_name=message.display_name, seen=time.monotonic()
        )
        note = "This service trains LoRA pairs on attention and feed-forward layers, not on the unembedding."
        return {"type": "create_session", "session_id": name, "info_message": note}

    def _heartbeat(self, body: bytes) -> Row:
        self._session(wire.read_json(body, wire.OfSessionRequest).session_id).seen = time.monotonic()
        return {"type": "session_heartbeat"}

    def _finish(self, name: str) -> Row:
        """End a session: its models and samplers leave the memory; what was saved stays."""
        session = self._session(name)
        session.finished = True
        for model in session.models:
            if self._models.pop(model, None) is not None:
                self._queue.submit(QueuedCall(f"{model}/end", partial(self._dropped, model)))
        for sampler_id in session.samplers:
            self._samplers.pop(sampler_id, None)
        return {}

    def _dropped(self, model_id: str) -> Answer:
        self._engine.drop(model_id)
        return {}

    async def _retrieve(self, request: HttpRequest) -> Response:
        message = wire.read_json(body_of(request), wire.FutureRequest)
        try:
            answer = await self._queue.wait(message.request_id, WAIT)
        except DataError as error:
            return error_response(404, str(error))
        if answer is None:
            row = {"type": "try_again", "request_id": message.request_id, "queue_state": "active"}
            return json_response(row)
        if isinstance(answer, RefusedRequest):
            category = "user" if answer.user else "server"
            return json_response({"error": answer.message, "category": category})
        if isinstance(answer, bytes):
            return Response(body=answer, content_type=wire.PROTOBUF)
        return json_response(answer)

    def _cancel(self, body: bytes) -> Row:
        self._queue.cancel(wire.read_json(body, wire.FutureRequest).request_id)
        return {}

    # Models

    def _create_model(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.ModelRequest)
        lora = message.lora_config
        if lora is None:
            raise ConfigError("This service trains only LoRA pairs, but the request has no lora_config.")
        if not (lora.train_mlp and lora.train_attn):
            raise ConfigError("This service trains attention and feed-forward layers only together.")
        _adam_only(message.optimizer_config)
        seed = uuid.uuid4().int >> 65 if lora.seed is None else lora.seed % (1 << 63)
        base = self._base(message.base_model)
        made = partial(self._run, base, message.user_metadata, rank=lora.rank, seed=seed)
        return self._begin(message.session_id, message.model_seq_id, base, made)

    def _run(self, base: BaseModel, metadata: Row | None, run_id: str, *, rank: int, seed: int) -> StoredRun:
        return StoredRun(
            run_id=run_id,
            base_model=base.name,
            base=str(base.folder),
            rank=rank,
            alpha=ALPHA,
            seed=seed,
            created=ck.utc_now(),
            user_metadata=metadata,
        )

    def _begin(
        self,
        session_id: str,
        number: int,
        base: BaseModel,
        made: Callable[[str], StoredRun],
        state: Path | None = None,
        *,
        optimizer: bool = False,
    ) -> Row:
        """Begin a model; the same session and number mean the same one."""
        session = self._session(session_id)
        model_id = f"{session_id}:train:{number}"
        request_id = f"{model_id}/0"
        if model_id not in session.models:
            run = made(model_id)
            loaded = {"type": "load_weights", "path": str(state), "model_id": model_id}

            def create() -> Answer:
                self._engine.create(run, base, state, optimizer=optimizer)
                self._saved.add_run(run)
                if state:
                    return loaded
                return {"type": "create_model", "model_id": model_id}

            session.models.append(model_id)
            line = RequestQueue(self._queue, model_id)
            self._models[model_id] = TrainedModel(run=run, base=base, line=line)
            self._queue.submit(QueuedCall(request_id, create))
        return {"request_id": request_id, "model_id": model_id}

    def _get_info(self, body: bytes) -> Row:
        model = self._model(wire.read_json(body, wire.OfModelRequest).model_id)
        about = {"arch": "llama", "model_name": model.base.name, "tokenizer_id": str(model.base.folder)}
        return {
            "type": "get_info",
            "model_data": about,
            "model_id": model.run.run_id,
            "is_lora": True,
            "lora_rank": model.run.rank,
            "model_name": model.base.name,
        }

    def _pass(self, body: bytes, *, only: bool) -> Row:
        message = wire.read_pass(body)
        if only:
            message = msgspec.structs.replace(message, forward_only=True)
        return self._later(message.model_id, message.seq_id, lambda: wire.pass_answer(self._engine.learn(message)))

    def _optim_step(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.StepRequest)
        if message.optimizer_params is not None:
            raise ConfigError("This service has only the optimizer adamw: send adam_params.")
        adam = message.adam_params or wire.Adam()

        def step() -> Answer:
            metrics = self._engine.step(message.model_id, adam)
            return {"metrics": {f"{name}:mean": value for name, value in metrics.items()}}

        return self._later(message.model_id, message.seq_id, step)

    def _save_weights(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.SaveRequest)
        address = Address(message.model_id, "weights", message.path or f"step-{uuid.uuid4().hex[:8]}")
        return self._later(message.model_id, message.seq_id, lambda: self._save(address, message, optimizer=True))

    def _save_for_sampler(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.SaveRequest)
        if message.path is not None:
            address = Address(message.model_id, "sampler_weights", message.path)
            return self._later(
                message.model_id, message.seq_id, lambda: self._save(address, message, optimizer=False)
            )
        if message.sampling_session_seq_id is None:
            raise DataError("The request names neither a path nor a sampling session.")
        model = self._model(message.model_id)
        session_id = message.model_id.split(":", 1)[0]
        sampler = self._sampler(session_id, message.sampling_session_seq_id, model.base, _pairs_of(model.run))

        def snapshot() -> Answer:
            sampler.pairs = self._engine.snapshot(message.model_id)
            return {"type": "save_weights_for_sampler", "sampling_session_id": sampler.sampler_id}

        reply = self._later(message.model_id, message.seq_id, snapshot)
        if sampler.sampler_id not in model.snapshots:
            model.snapshots.append(sampler.sampler_id)
        for old in model.snapshots[:-SNAPSHOTS]:
            model.snapshots.remove(old)
            self._samplers.pop(old, None)
        return reply

    def _save_external(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.SaveRequest)
        if message.path is None or message.age_encryption_recipients:
            raise ConfigError("This service saves weights for others under a name, without encryption.")
        address = Address(message.model_id, "external_weights", message.path)
        return self._later(message.model_id, message.seq_id, lambda: self._save(address, message, optimizer=False))

    def _save(self, address: Address, message: wire.SaveRequest, *, optimizer: bool) -> Answer:
        about = ck.new_checkpoint_info(message.ttl_seconds, message.user_metadata)
        write = self._engine.writer(address.run_id, optimizer=optimizer)
        self._saved.save(address, about, write, overwrite=message.overwrite or not optimizer)
        return {"path": str(address)}

    def _load_weights(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.LoadRequest)
        folder = self._saved.find(message.path)
        of = self._saved.read_run(ck.parse_address(message.path).run_id)
        base = self._base(message.base_model or of.base_model)
        if message.optimizer_config is not None:
            _adam_only(message.optimizer_config)
        if message.session_id is not None and message.model_seq_id is not None:
            made = partial(self._run, base, message.user_metadata, rank=of.rank, seed=of.seed)
            return self._begin(
                message.session_id, message.model_seq_id, base, made, folder, optimizer=message.optimizer
            )
        if message.model_id is None:
            raise DataError("The request names neither a model nor a session.")

        def load() -> Answer:
            self._engine.restore(str(message.model_id), folder, optimizer=message.optimizer)
            return {"type": "load_weights", "path": message.path, "model_id": message.model_id}

        return self._later(message.model_id, message.seq_id, load)

    def _unload_model(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.OrderedRequest)

        def unload() -> Answer:
            self._engine.drop(message.model_id)
            return {"type": "unload_model", "model_id": message.model_id}

        reply = self._later(message.model_id, message.seq_id, unload)
        self._models.pop(message.model_id)
        return reply

    def _later(self, model_id: str, number: int | None, run: Callable[[], Answer]) -> Row:
        return {"request_id": self._model(model_id).line.add(number, run), "model_id": model_id}

    # Samplers

    def _create_sampler(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.SamplerRequest)
        if message.model_path is not None:
            folder = self._saved.find(message.model_path)
            run = self._saved.read_run(ck.parse_address(message.model_path).run_id)
            base, lora = self._base(run.base_model), _pairs_of(run)
        elif message.base_model is not None:
            folder, base, lora = None, self._base(message.base_model), PLAIN
        else:
            raise DataError("The request names neither a model_path nor a base_model.")
        sampler = self._sampler(message.session_id, message.sampling_session_seq_id, base, lora)
        sampler.folder, sampler.model_path = folder, message.model_path
        return {"type": "create_sampling_session", "sampling_session_id": sampler.sampler_id}

    def _sampler(self, session_id: str, number: int, base: BaseModel, lora: LoraConfig) -> Sampler:
        """Return the sampler; the same session and number mean the same one."""
        session = self._session(session_id)
        sampler_id = f"{session_id}:sample:{number}"
        if sampler_id not in self._samplers:
            session.samplers.append(sampler_id)
            self._samplers[sampler_id] = Sampler(
                sampler_id=sampler_id, session_id=session_id, base=base, lora=lora
            )
        return self._samplers[sampler_id]

    def _join_sampler(self, body: bytes) -> Row:
        row = wire.read_json(body, wire.JoinRequest)
        session = self._session(self._known_sampler(row.sampling_session_id).session_id)
        session.clones += 1
        return {"type": "join_sampling_session", "client_counter": session.clones}

    def _sample(self, body: bytes) -> Row:
        message = wire.read_json(body, wire.SampleRequest)
        sampler = self._known_sampler(message.sampling_session_id)
        request_id = f"{sampler.sampler_id}/{message.seq_id}"
        if not self._queue.has_request(request_id):
            sample = partial(self._engine.sample, sampler)
            job = QueuedCall(request_id, lambda: sample([message])[0])
            if message.sampling_params.seed is None:
                # Whose seed is given must not depend, not even by rounding, on who else asks at the same time.
                job.group = sampler.sampler_id, message.num_samples, msgspec.json.encode(message.sampling_params)
                job.item, job.together = message, sample
            self._queue.submit(job)
        ids = [f"{request_id}/{index}" for index in range(message.num_samples)]
        return {"request_id": request_id, "sample_sequence_ids": ids}

    # What is there

    def _weights_info(self, body: bytes) -> Row:
        path = wire.read_json(body, wire.PathRequest).tinker_path
        self._saved.find(path)
        run = self._saved.read_run(ck.parse_address(path).run_id)
        parts = {"train_unembed": False, "train_mlp": True, "train_attn": True}
        return {"base_model": run.base_model, "is_lora": True, "lora_rank": run.rank, **parts}

    def _base(self, name: str) -> BaseModel:
        if name in self._bases:
            return self._bases[name]
        raise UnknownNameError("model", name[:200], self._bases)

    def _session(self, name: str) -> ClientSession:
        session = self._sessions.get(name)
        if session is None or session.finished:
            raise UnknownNameError("session", name[:100], (), hint="It has ended, or the service was restarted.")
        return session

    def _model(self, model_id: str) -> TrainedModel:
        if model_id in self._models:
            return self._models[model_id]
        hint = "The service was restarted, or never had it."
        if self._ran(model_id):
            states = [
                checkpoint for checkpoint in self._saved.list_checkpoints(model_id) if checkpoint.kind == "weights"
            ]
            if states:
                hint = f"The service was restarted; its last state is {states[-1]}."
        raise UnknownNameError("model", model_id[:100], (), hint=hint)

    def _ran(self, run_id: str) -> bool:
        return run_id in self._saved.run_ids()

    def _known_sampler(self, name: str) -> Sampler:
        if name not in self._samplers:
            hint = "It has ended, or the service was restarted: create another sampling client."
            raise UnknownNameError("sampling session", name[:100], (), hint=hint)
        return self._samplers[name]

    def _opened(self, session: ClientSession) -> Row:
        return {
            "training_run_ids": session.models,
            "sampler_ids": session.samplers,
            "user_metadata": {name: str(value) for name, value in (session.user_metadata or {}).items()},
            "display_name": session.display_name,
        }

    def _asked(self, sampler: Sampler) -> Row:
        return {
            "sampler_id": sampler.sampler_id,
            "base_model": sampler.base.name,
            "model_path": sampler.model_path,
        }


def _pairs_of(run: StoredRun) -> LoraConfig:
    """Return the LoRA settings that pairs of the same shape have in common."""
    return LoraConfig(rank=run.rank, alpha=run.alpha)


def _adam_only(optimizer: wire.OptimizerKind) -> None:
    if optimizer.type != "adamw":
        raise ConfigError(f"This service has no optimizer '{optimizer.type[:40]}', only adamw.")
