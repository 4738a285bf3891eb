# SPDX-License-Identifier: Apache-2.0
"""The library's client of a served sandbox, over our own HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from newskills.base.errors import HttpError, RequestTimeoutError, TransportError
from newskills.base.http.client import HttpClient
from newskills.base.http.connection import HttpResponse
from newskills.base.http.proxy import proxy_for
from newskills.base.protocols import Execution, ExecutionResult
from newskills.sandbox.codec import FAST_JSON
from newskills.sandbox.own_errors import own_errors
from newskills_sandbox.http.client import ExchangeError, ExchangeTimeoutError, SandboxClient
from newskills_sandbox.http.messages import HeaderFields
from newskills_sandbox.variables import TOKEN_VARIABLE

CONNECTIONS = 1024


class HttpSandbox(SandboxClient):
    """Implements `Sandbox` over HTTP. Belongs to the event loop of its first request."""

    def __init__(self, host: str, port: int, environ: Mapping[str, str]) -> None:
        url = f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}"
        token = environ.get(TOKEN_VARIABLE, "")
        headers = (("Authorization", f"Bearer {token}"),) if token else ()
        self._http = HttpClient(url, limit=CONNECTIONS, headers=headers, proxy=proxy_for(url, environ))
        super().__init__(url, _Exchange(self._http), FAST_JSON)

    async def start(self) -> None:
        """Ask the server for the id of its run, unless it is known. Raises SandboxError where no sandbox answers."""
        with own_errors():
            await super().start()

    async def health(self) -> dict[str, Any]:
        """Return the answer to `GET /health`. Raises SandboxError."""
        with own_errors():
            return await super().health()

    async def execute(self, execution: Execution) -> ExecutionResult:
        """Execute code on the server. Raises ExecutionRefusedError, SandboxError."""
        with own_errors():
            return await super().execute(execution)

    async def delete_session(self, session_id: str) -> None:
        """Delete the session on the server. Raises SandboxError."""
        with own_errors():
            await super().delete_session(session_id)


class _Exchange:
    """Implements the library's `Exchange`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def send(
        self, method: str, path: str, timeout: float, body: bytes | None = None, headers: HeaderFields = ()
    ) -> HttpResponse:
        try:
            return await self._http.request(method, path, timeout, body=body, headers=tuple(headers))
        except RequestTimeoutError as error:
            raise ExchangeTimeoutError(error.message) from error
        except HttpError as error:
            raise ExchangeError(error.message, broken=isinstance(error, TransportError)) from error

    async def close(self) -> None:
        await self._http.close()
