# SPDX-License-Identifier: Apache-2.0
"""Batches of OpenAI and Azure OpenAI: a file of requests, a batch of it, a file of replies and one of errors.

https://platform.openai.com/docs/api-reference/batch, https://learn.microsoft.com/azure/ai-foundry/openai/how-to/batch.
A batch is found again by its metadata.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from newskills.base.errors import HttpError, ServerError
from newskills.base.http.client import HttpClient
from newskills.base.records import Request, Row
from newskills.models.batch_apis.service import (
    CLOCKS_DIFFER,
    BatchLook,
    HttpBatches,
    RowResult,
    UnansweredError,
    decode_json,
)
from newskills.models.config import ServerConfig
from newskills.models.errors import EndpointIdentity, Refusal, error_for, read_refusal, refusal_of
from newskills.models.kinds import MODELS
from newskills.models.openai import AZURE_VERSION, OpenAIModel, make_hosted
from newskills.models.openai import make_azure as make_azure_model

TAG = "newskills_batch"
"""Key of the metadata by which a batch is found again."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
FULL = "token_limit_exceeded"
"""Code of a batch that was not taken because too many tokens wait already."""
UNREAD = frozenset({"pending", "running"})
"""States of a file that Azure has not read yet."""
LOST = {"batch_expired": "expired", "batch_cancelled": "cancelled"}
PAGE = 100
READ_EVERY = 2.0


class _Response(Struct):
    status_code: int = 200
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


_lines = msgspec.json.Decoder(_Line)


class OpenAIBatches(HttpBatches):
    """A BatchService. `paths`: inference.endpoint_type → path in the rows of a file."""

    model: OpenAIModel

    def __init__(
        self, model: OpenAIModel, paths: Mapping[str, str], http: HttpClient | None = None, query: str = ""
    ) -> None:
        super().__init__(model, http, query)
        self._paths = paths

    def encoded(self, key: str, request: Request) -> tuple[str, bytes]:
        """Return (path, line of the file). Raises ConfigError."""
        return encoded_row(self.model, self._paths, key, request)

    async def submit(self, name: str, endpoint: str, path: Path, rows: int) -> str:
        """Send the file and make a batch of it. Raises the HttpError family."""
        file = await self._upload(name, await asyncio.to_thread(path.read_bytes))
        while file.get("status") in UNREAD:
            await asyncio.sleep(READ_EVERY)
            file = await self.call("GET", f"/files/{quote(str(file['id']), safe='')}")
        batch = {
            "input_file_id": file["id"],
            "endpoint": endpoint,
            "completion_window": "24h",
            "metadata": {TAG: name},
        }
        return str((await self.call("POST", "/batches", batch))["id"])

    async def find(self, name: str, rows: int, since: float) -> list[str]:
        """Return the batch with that name in its metadata. Raises the HttpError family."""
        after = ""
        while True:
            page = await self.call("GET", f"/batches?limit={PAGE}{after}")
            batches = page.get("data") or []
            tagged = [str(b["id"]) for b in batches if (b.get("metadata") or {}).get(TAG) == name]
            if tagged or not batches or not page.get("has_more"):
                return tagged
            if batches[-1].get("created_at", since) < since - CLOCKS_DIFFER:
                return []
            after = f"&after={quote(str(batches[-1]['id']), safe='')}"

    async def look(self, handle: str) -> BatchLook:
        """Return what has become of a batch. Raises the HttpError family."""
        batch = await self.call("GET", f"/batches/{quote(handle, safe='')}")
        counts = batch.get("request_counts") or {}
        files = [batch.get("output_file_id"), batch.get("error_file_id")]
        errors = [error for error in (batch.get("errors") or {}).get("data") or [] if isinstance(error, dict)]
        state = str(batch.get("status"))
        failed = state == "failed"
        return BatchLook(
            state=state,
            ended=state in ENDED,
            done=(counts.get("completed") or 0) + (counts.get("failed") or 0),
            files=tuple(str(file) for file in files if file),
            refusal=_first_message(errors) if failed else "",
            full=failed and any(error.get("code") == FULL for error in errors),
            bad_rows=_bad_rows(errors) if failed else {},
        )

    async def download(self, handle: str, file: str) -> AsyncIterator[bytes]:
        """Yield a file of results, in pieces. Raises the HttpError family."""
        async for piece in self.pieces(self.http, f"/files/{quote(file, safe='')}/content"):
            yield piece

    def result(self, line: bytes) -> RowResult:
        """Read one line of results. Raises msgspec.MsgspecError for one that is damaged."""
        return read_row(line, self.model.endpoint)

    async def _upload(self, name: str, content: bytes) -> Row:
        boundary = secrets.token_hex(16)
        part = f'--{boundary}\r\nContent-Disposition: form-data; name="'
        head = f'{part}purpose"\r\n\r\nbatch\r\n{part}file"; filename="{name}.jsonl"\r\n'
        body = b"%b\r\n%b\r\n--%b--\r\n" % (
            f"{head}Content-Type: application/jsonl\r\n".encode(),
            content,
            boundary.encode(),
        )
        kind = f"multipart/form-data; boundary={boundary}".encode()
        response = await self.send(self.http, "POST", "/files", body, content_type=kind)
        file: Row = decode_json(response, self.address)
        return file


def make(config: ServerConfig, *, folder: Path, environ: Mapping[str, str]) -> OpenAIBatches:
    """Return the batches of OpenAI, or of any service of that shape. Raises ConfigError, AuthError."""
    return OpenAIBatches(make_hosted(config, concurrency=1, environ=environ), _endpoint_paths(config))


def make_azure(config: ServerConfig, *, folder: Path, environ: Mapping[str, str]) -> OpenAIBatches:
    """Return the batches of Azure OpenAI, which belong to a resource and not to a deployment. Raises ConfigError,
    AuthError."""
    model = make_azure_model(config, concurrency=1, environ=environ)
    address, deployment, _ = model.endpoint.address.partition("/deployments/")
    query = f"api-version={AZURE_VERSION}" if deployment else ""
    return OpenAIBatches(model, _endpoint_paths(config), model.client_at(address), query)


def encoded_row(model: OpenAIModel, paths: Mapping[str, str], key: str, request: Request) -> tuple[str, bytes]:
    """Return (path, line of the file); `paths`: inference.endpoint_type → path. Raises ConfigError."""
    path = paths[request.inference.endpoint_type]
    body = model.encoded(request)[1]
    return path, b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}' % (key.encode(), path.encode(), body)


def read_row(line: bytes, endpoint: EndpointIdentity) -> RowResult:
    """Read one line of a file of replies or errors. Raises msgspec.MsgspecError for one that is damaged."""
    row = _lines.decode(line)
    response = row.response
    if response is not None and response.status_code == 200 and not row.error:
        return RowResult(key=row.custom_id, body=bytes(response.body))
    return RowResult(key=row.custom_id, error=_row_error(row, endpoint))


def _row_error(row: _Line, endpoint: EndpointIdentity) -> HttpError:
    refusal = refusal_of({"error": row.error}) if row.error else Refusal("no reason is given")
    if refusal.code in LOST:
        return UnansweredError(LOST[refusal.code])
    if row.response is None:
        return ServerError(f"{endpoint.address} says: {endpoint.scrub(refusal.message)}")
    if bytes(row.response.body) != b"null":
        refusal = read_refusal(bytes(row.response.body))
    status = row.response.status_code
    return error_for(500 if status == 200 else status, refusal, endpoint)


def _endpoint_paths(config: ServerConfig) -> Mapping[str, str]:
    batch = MODELS.properties(config.server_type).batch
    assert batch is not None
    return batch.endpoints


def _first_message(errors: list[Row]) -> str:
    return next((str(error["message"]) for error in errors if error.get("message")), "no reason is given")


def _bad_rows(errors: list[Row]) -> dict[int, str]:
    numbers = {error["line"]: str(error.get("message")) for error in errors if isinstance(error.get("line"), int)}
    first = 0 if 0 in numbers else 1
    return {number - first: message for number, message in numbers.items()}
