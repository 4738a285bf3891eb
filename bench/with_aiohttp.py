# SPDX-License-Identifier: Apache-2.0
"""`ns …` with aiohttp in the place of our HTTP client: what decisions/0002 is measured by. For requests by POST."""

from __future__ import annotations

import sys
from typing import Any

import aiohttp

import newskills.models.wire
from newskills.base.http.client import HeaderList, HttpClient
from newskills.base.http.connection import HttpResponse
from newskills.cli import main


class AiohttpClient(HttpClient):
    """One session for all requests, as aiohttp's own documentation advises."""

    _session: Any = None

    async def post(self, path: str, body: bytes, timeout: float, headers: HeaderList = ()) -> HttpResponse:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._limit)
            self._session = aiohttp.ClientSession(connector=connector, headers=dict(self._headers))
        sent = {"Content-Type": "application/json", **dict(headers)}
        limit = aiohttp.ClientTimeout(total=timeout)
        url = f"{self.base_url}{path}"
        async with self._session.post(url, data=body, headers=sent, timeout=limit) as reply:
            received = [(name.lower(), value) for name, value in reply.raw_headers]
            return HttpResponse(reply.status, received, await reply.read())

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        await super().close()


if __name__ == "__main__":
    newskills.models.wire.HttpClient = AiohttpClient  # type: ignore[misc]
    sys.exit(main(sys.argv[1:]))
