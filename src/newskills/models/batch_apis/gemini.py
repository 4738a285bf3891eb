# SPDX-License-Identifier: Apache-2.0
"""Batches of Gemini: a file of requests, an operation, a file of responses.

https://ai.google.dev/gemini-api/docs/batch-api, https://ai.google.dev/api/files. A batch is found again by its display
name. What has expired there (after 48 hours) has no results at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from newskills.base.errors import ServerError
from newskills.base.records import Request, Row
from newskills.models.batch_apis.service import BatchLook, HttpBatches, RowResult, decode_json
from newskills.models.config import ServerConfig
from newskills.models.decode import first_count, member_of
from newskills.models.errors import error_for, refusal_of
from newskills.models.gemini import GeminiModel
from newskills.models.gemini import make as make_model

ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"})
FAILED = "FAILED"
STATUSES = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}
"""Codes of google.rpc.Status → HTTP."""
PAGE = 100
ANSWERED = ("successfulRequestCount", "failedRequestCount")


class _Line(Struct):
    key: str
    response: msgspec.Raw = msgspec.Raw(b"null")
    error: Any = None
    status: Any = None


_lines = msgspec.json.Decoder(_Line)


class GeminiBatches(HttpBatches):
    """A BatchService. Files are sent to another path of the same host."""

    model: GeminiModel

    def __init__(self, model: GeminiModel) -> None:
        super().__init__(model)
        address = model.endpoint.address
        root = address[: len(address) - len(urlsplit(address).path)]
        self._files, self._version = model.client_at(root), urlsplit(address).path

    async def close(self) -> None:
        await self._files.close()
        await super().close()

    def encoded(self, key: str, request: Request) -> tuple[str, bytes]:
        """Return ("", line of the file). Raises ConfigError."""
        return "", b'{"key":"%b","request":%b}' % (key.encode(), self.model.encoded(request)[1])

    async def submit(self, name: str, endpoint: str, path: Path, rows: int) -> str:
        """Send the file and make a batch of it. Raises the HttpError family."""
        file = await self._upload(name, await asyncio.to_thread(path.read_bytes))
        batch = {"batch": {"displayName": name, "inputConfig": {"fileName": file}}}
        return str((await self.call("POST", f"{self.model.path}:batchGenerateContent", batch))["name"])

    async def find(self, name: str, rows: int, since: float) -> list[str]:
        """Return the batch with that display name. Raises the HttpError family."""
        token = ""
        while True:
            page = await self.call("GET", f"/batches?pageSize={PAGE}{token}")
            operations: list[Row] = page.get("operations") or page.get("batches") or []
            named = [
                str(operation["name"])
                for operation in operations
                if _operation_metadata(operation).get("displayName") == name
            ]
            if named or not page.get("nextPageToken"):
                return named
            token = f"&pageToken={quote(str(page['nextPageToken']), safe='')}"

    async def look(self, handle: str) -> BatchLook:
        """Return what has become of a batch. Raises the HttpError family."""
        operation = await self.call("GET", f"/{handle}")
        about = _operation_metadata(operation)
        state = str(about.get("state", "")).removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        stats = about.get("batchStats")
        output = operation.get("response") or about.get("output")
        file = member_of(output, "responsesFile")
        error = operation.get("error") or about.get("error")
        return BatchLook(
            state=state.lower(),
            ended=state in ENDED,
            done=sum(first_count(stats, name) or _read_count(stats, name) for name in ANSWERED),
            files=(str(file),) if file else (),
            refusal=refusal_of({"error": error}).message if state == FAILED and error else "",
            full=state == FAILED and member_of(error, "code") == 8,
        )

    async def download(self, handle: str, file: str) -> AsyncIterator[bytes]:
        """Yield the file of responses, in pieces. Raises the HttpError family."""
        async for piece in self.pieces(self.http, f"/{file}:download?alt=media"):
            yield piece

    def result(self, line: bytes) -> RowResult:
        """Read one line of results. Raises msgspec.MsgspecError for one that is damaged."""
        row = _lines.decode(line)
        error = row.error or row.status
        if not error and bytes(row.response) != b"null":
            return RowResult(key=row.key, body=bytes(row.response))
        refusal = refusal_of({"error": error or "no response"})
        code = member_of(error, "code")
        status = code if isinstance(code, int) and code >= 400 else STATUSES.get(code, 500)
        return RowResult(key=row.key, error=error_for(status, refusal, self.model.endpoint))

    async def _upload(self, name: str, content: bytes) -> str:
        """Send a file by the resumable protocol, in one piece; return its name."""
        start = (
            ("X-Goog-Upload-Protocol", "resumable"),
            ("X-Goog-Upload-Command", "start"),
            ("X-Goog-Upload-Header-Content-Length", str(len(content))),
            ("X-Goog-Upload-Header-Content-Type", "application/jsonl"),
        )
        about = msgspec.json.encode({"file": {"displayName": name}})
        path = f"/upload{self._version}/files"
        begun = await self.send(self._files, "POST", path, about, headers=start)
        address = urlsplit(begun.header("x-goog-upload-url") or "")
        if not address.query:
            raise ServerError(f"{self.address} did not say where a file is to be sent.", status=200)
        finish = (("X-Goog-Upload-Offset", "0"), ("X-Goog-Upload-Command", "upload, finalize"))
        target = f"{address.path}?{address.query}"
        sent = await self.send(self._files, "POST", target, content, headers=finish)
        return str(decode_json(sent, self.address)["file"]["name"])


def make(config: ServerConfig, *, folder: Path, environ: Mapping[str, str]) -> GeminiBatches:
    """Return the batches of Gemini. Raises ConfigError, AuthError."""
    return GeminiBatches(make_model(config, concurrency=1, environ=environ))


def _operation_metadata(operation: Row) -> Row:
    about: Row = operation.get("metadata") or operation
    return about


def _read_count(stats: Any, name: str) -> int:
    """Return a count that is sent as text, as 64-bit numbers are in Google's JSON."""
    text = member_of(stats, name)
    if isinstance(text, str) and text.isdecimal():
        return int(text)
    return 0
