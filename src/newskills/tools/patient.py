# SPDX-License-Identifier: Apache-2.0
"""A client of the APIs that tools ask: it waits where that helps, and tells a wrong query from an API out of order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from newskills.base.aio import backoff_seconds
from newskills.base.errors import FatalToolError, HttpError, ToolError
from newskills.base.http.client import HeaderList, HttpClient
from newskills.base.http.connection import HttpResponse
from newskills.base.http.proxy import proxy_for

AT_ONCE = 16
LONGEST_PAUSE = 60.0


class PatientClient:
    """Asks the API at `url` up to `max_retries` times again after 429, 5xx and lost connections.

    name      what errors call the API
    key_name  the variable that holds its key
    timeout   seconds of one request
    """

    def __init__(
        self,
        url: str,
        environ: Mapping[str, str],
        *,
        name: str,
        timeout: float,
        max_retries: int,
        key_name: str = "",
        headers: HeaderList = (),
    ) -> None:
        self._url, self._name, self._key_name = url, name, key_name
        self._timeout, self._max_retries = timeout, max_retries
        parts = urlsplit(url)
        base = f"{parts.scheme}://{parts.netloc}"
        self._http = HttpClient(base, limit=AT_ONCE, headers=headers, proxy=proxy_for(base, environ))

    async def ask(self, path: str, body: bytes | None = None) -> HttpResponse:
        """Return an answer with status 200 to a POST, or to a GET where there is no body. Raises ToolError for what the
        API refuses, FatalToolError for an API that cannot be used."""
        tries = 0
        while True:
            tries += 1
            wait, why = backoff_seconds(tries, cap=LONGEST_PAUSE), ""
            try:
                if body is None:
                    response = await self._http.get(path, self._timeout)
                else:
                    response = await self._http.post(path, body, self._timeout)
            except HttpError as error:
                why = error.message
            else:
                if response.status == 200:
                    return response
                wait = max(wait, self._judge(response))
                why = f"status {response.status}"
            if tries > self._max_retries:
                raise FatalToolError(f"{self._name} gave no answer in {tries} tries ({why}).")
            await asyncio.sleep(wait)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _judge(self, response: HttpResponse) -> float:
        """Return the seconds that the API asks to wait. Raises ToolError, FatalToolError where waiting does not
        help."""
        status = response.status
        if status in (400, 422):
            raise ToolError(f"{self._name} refuses this query: {response.body[:300].decode(errors='replace')}")
        if status in (401, 403) and self._key_name:
            raise FatalToolError(f"{self._name} refuses the key of {self._key_name} (status {status}).")
        if status != 429 and status < 500:
            raise FatalToolError(f"{self._name} cannot be used: status {status} at {self._url}.")
        wait_text = response.header("retry-after") or ""
        if wait_text.isdecimal():
            return min(float(wait_text), LONGEST_PAUSE)
        return 0.0
