# SPDX-License-Identifier: Apache-2.0
"""Message Batches of Anthropic: all requests in one call, a file of results.

https://docs.claude.com/en/api/creating-message-batches. A batch has no name there. It is found again by
when it was made and how many requests it has; whether it is the right one, the ids of its results tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from newskills.base.records import Request, Row
from newskills.models.anthropic import AnthropicModel
from newskills.models.anthropic import make as make_model
from newskills.models.batch_apis.service import (
    CLOCKS_DIFFER,
    FILE_SECONDS,
    BatchLook,
    HttpBatches,
    RowResult,
    UnansweredError,
)
from newskills.models.config import ServerConfig
from newskills.models.errors import error_for, refusal_of

PATH = "/messages/batches"
LOST = frozenset({"expired", "canceled"})
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Types of errors → the status that they have outside of batches (https://docs.claude.com/en/api/errors)."""
PAGE = 100


class _Outcome(Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: Any = None


class _Line(Struct):
    custom_id: str
    result: _Outcome


_lines = msgspec.json.Decoder(_Line)


class AnthropicBatches(HttpBatches):
    """A BatchService."""

    model: AnthropicModel

    def encoded(self, key: str, request: Request) -> tuple[str, bytes]:
        """Return ("", request as a member of the list). Raises ConfigError."""
        return "", b'{"custom_id":"%b","params":%b}' % (key.encode(), self.model.encoded(request)[1])

    async def submit(self, name: str, endpoint: str, path: Path, rows: int) -> str:
        """Send all requests. Raises the HttpError family."""
        lines = (await asyncio.to_thread(path.read_bytes)).splitlines()
        batch = await self.call("POST", PATH, b'{"requests":[%b]}' % b",".join(lines))
        return str(batch["id"])

    async def find(self, name: str, rows: int, since: float) -> list[str]:
        """Return the batches of that time and size, the nearest in time first. Raises the HttpError family."""
        likely, after = list[Row](), ""
        while True:
            page = await self.call("GET", f"{PATH}?limit={PAGE}{after}")
            batches: list[Row] = page.get("data") or []
            likely += [batch for batch in batches if _is_same_batch(batch, rows, since)]
            if not batches or not page.get("has_more") or _creation_time(batches[-1]) < since - CLOCKS_DIFFER:
                likely.sort(key=lambda batch: abs(_creation_time(batch) - since))
                return [str(batch["id"]) for batch in likely]
            after = f"&after_id={quote(str(page.get('last_id') or batches[-1]['id']), safe='')}"

    async def look(self, handle: str) -> BatchLook:
        """Return what has become of a batch. Raises the HttpError family."""
        batch = await self.call("GET", f"{PATH}/{quote(handle, safe='')}")
        state = str(batch.get("processing_status"))
        counts = batch.get("request_counts") or {}
        return BatchLook(
            state=state,
            ended=state == "ended",
            done=sum(counts.get(name) or 0 for name in ("succeeded", "errored", "canceled", "expired")),
            files=("results",) if batch.get("results_url") and not batch.get("archived_at") else (),
        )

    async def download(self, handle: str, file: str) -> AsyncIterator[bytes]:
        """Yield the results, in pieces. Raises the HttpError family."""
        async for piece in self.pieces(self.http, f"{PATH}/{quote(handle, safe='')}/{file}"):
            yield piece

    def result(self, line: bytes) -> RowResult:
        """Read one line of results. Raises msgspec.MsgspecError for one that is damaged."""
        row = _lines.decode(line)
        outcome = row.result
        if outcome.type == "succeeded":
            return RowResult(key=row.custom_id, body=bytes(outcome.message))
        if outcome.type in LOST:
            return RowResult(key=row.custom_id, error=UnansweredError(outcome.type))
        refusal = refusal_of(outcome.error)
        status = STATUSES.get(refusal.code, 500)
        return RowResult(key=row.custom_id, error=error_for(status, refusal, self.model.endpoint))


def make(config: ServerConfig, *, folder: Path, environ: Mapping[str, str]) -> AnthropicBatches:
    """Return the batches of Anthropic. Raises ConfigError, AuthError."""
    return AnthropicBatches(make_model(config, concurrency=1, environ=environ))


def _is_same_batch(batch: Row, rows: int, since: float) -> bool:
    made = _creation_time(batch)
    total = sum((batch.get("request_counts") or {}).values())
    return total == rows and since - CLOCKS_DIFFER <= made <= since + FILE_SECONDS + CLOCKS_DIFFER


def _creation_time(batch: Row) -> float:
    try:
        return datetime.fromisoformat(str(batch.get("created_at"))).timestamp()
    except ValueError:
        return 0.0
