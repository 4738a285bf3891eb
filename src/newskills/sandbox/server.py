# SPDX-License-Identifier: Apache-2.0
"""The sandbox over HTTP, as clients of NeMo-Skills know it.

POST /execute          run code (see `wire.read_execution`); X-Session-ID names the session of stateful languages,
                       X-Request-ID, where given, makes a repeated request return the first one's result,
                       X-Session-Once keeps nothing of the session
GET /health            {"status": "healthy", "worker", "run_id", "isolation_level"}
GET /sessions          {"sessions": {id: {…}}}
DELETE /sessions/<id>  ends a session; 404 for an unknown one
GET /metrics           counters since the start
"""

from __future__ import annotations

import hmac
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import unquote

from newskills.base.http.hosts import own_names_only
from newskills.base.http.messages import (
    HttpRequest,
    Response,
    error_response,
    json_response,
    not_found,
    wrong_method,
)
from newskills.base.http.server import Server, serve
from newskills.base.protocols import Execution, ExecutionResult, Sandbox
from newskills.sandbox.shared_calls import SharedCalls
from newskills.sandbox.wire import (
    ONCE_HEADER,
    REQUEST_HEADER,
    SESSION_HEADER,
    check_name,
    read_execution,
    write_result,
)
from newskills_sandbox.errors import ExecutionRefusedError, SandboxError
from newskills_sandbox.languages import language

SESSIONS = "/sessions"
BROWSER_HEADERS = ("origin", "sec-fetch-site")


class HostedSandbox(Sandbox, Protocol):
    """A sandbox that can be served. `queued`: cells that wait for their turn; `sessions`: id → what is known of it."""

    @property
    def queued(self) -> int: ...

    @property
    def isolation_level(self) -> str: ...

    async def start(self) -> None: ...

    def sessions(self) -> Mapping[str, Mapping[str, Any]]: ...


class SandboxServer:
    """Answers requests with the sandbox it is given, whose life belongs to the caller."""

    def __init__(self, sandbox: HostedSandbox, *, token: str = "") -> None:
        self.run_id = uuid.uuid4().hex
        self._sandbox, self._token = sandbox, token
        self._once: SharedCalls[ExecutionResult] = SharedCalls(
            lambda result: len(result.stdout) + len(result.stderr) + 500
        )
        self._statuses: Counter[str] = Counter()
        self._failures = 0
        self._in_flight = 0

    async def serve(self, host: str, port: int) -> Server:
        """Serve requests at `host` and `port`. Raises ConfigError, ServerStartError."""
        return await serve(own_names_only(self.answer, host), host, port)

    async def close(self) -> None:
        await self._once.drop()

    async def answer(self, request: HttpRequest) -> Response:
        if request.path == "/health":
            return wrong_method(request, "GET") or json_response(self._health())
        if (refused := self._stranger(request)) is not None:
            return refused
        if request.path == "/execute":
            return wrong_method(request, "POST") or await self._execute(request)
        if request.path == SESSIONS:
            return wrong_method(request, "GET") or json_response({"sessions": self._sandbox.sessions()})
        if request.path.startswith(f"{SESSIONS}/"):
            return wrong_method(request, "DELETE") or await self._delete(request)
        if request.path == "/metrics":
            return wrong_method(request, "GET") or json_response(self._metrics())
        return not_found(request)

    def _stranger(self, request: HttpRequest) -> Response | None:
        header = request.headers.get("authorization", "")
        if self._token and not hmac.compare_digest(header.encode(), f"Bearer {self._token}".encode()):
            return error_response(
                401, "This sandbox needs a token: Authorization: Bearer …", (("WWW-Authenticate", "Bearer"),)
            )
        if any(name in request.headers for name in BROWSER_HEADERS):
            # Any page that is open in a browser on this machine can post to its loopback addresses.
            return error_response(403, "Web pages may not use the sandbox.")
        return None

    async def _execute(self, request: HttpRequest) -> Response:
        session_id, request_id = (request.headers.get(name.lower()) for name in (SESSION_HEADER, REQUEST_HEADER))
        self._in_flight += 1
        try:
            execution = read_execution(request.body, session_id)
            if ONCE_HEADER.lower() in request.headers:
                execution = replace(execution, session_id=None)
            if request_id:
                key = f"{check_name(request_id, f'The header {REQUEST_HEADER}')} {session_id or ''}"
                result = await self._once.do(key, request.body, lambda: self._run(execution))
            else:
                result = await self._run(execution)
        except ExecutionRefusedError as error:
            return error_response(400, str(error))
        except SandboxError as error:
            self._failures += 1
            return error_response(503, str(error))
        finally:
            self._in_flight -= 1
        stateful = language(execution.language).stateful
        return Response(200, write_result(result, stateful=stateful, run_id=self.run_id))

    async def _run(self, execution: Execution) -> ExecutionResult:
        result = await self._sandbox.execute(execution)
        self._statuses[result.status] += 1
        return result

    async def _delete(self, request: HttpRequest) -> Response:
        try:
            session_id = check_name(unquote(request.path.removeprefix(f"{SESSIONS}/")), "The session id")
            await self._once.drop(f" {session_id}")  # a cell whose client left might open the session again
            if session_id not in self._sandbox.sessions():
                return error_response(404, f"There is no session {session_id}.")
            await self._sandbox.delete_session(session_id)
        except ExecutionRefusedError as error:
            return error_response(400, str(error))
        except SandboxError as error:
            return error_response(503, str(error))
        return json_response({"message": f"Session {session_id} is deleted."})

    def _health(self) -> dict[str, Any]:
        return {
            "status": "healthy",
            "worker": 0,
            "run_id": self.run_id,
            "isolation_level": self._sandbox.isolation_level,
        }

    def _metrics(self) -> dict[str, Any]:
        return {
            "in_flight": self._in_flight,
            "queue_length": self._sandbox.queued,
            "executions": self._statuses.total(),
            "timeouts": self._statuses["timeout"],
            "statuses": dict(self._statuses),
            "failures": self._failures,
            "sessions": dict(self._sandbox.sessions()),
        }
