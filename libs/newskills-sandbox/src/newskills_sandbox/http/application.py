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

from newskills_sandbox.errors import ExecutionRefusedError, SandboxError
from newskills_sandbox.execution import CodeRunner, Execution, ExecutionResult
from newskills_sandbox.http.json_codec import STANDARD_JSON, JsonCodec
from newskills_sandbox.http.messages import ApiReply, ApiRequest, HeaderFields
from newskills_sandbox.http.shared_calls import SharedCalls
from newskills_sandbox.http.wire import (
    ONCE_HEADER,
    REQUEST_HEADER,
    SESSION_HEADER,
    check_name,
    read_execution,
    write_result,
)
from newskills_sandbox.languages import language

SESSIONS = "/sessions"
BROWSER_HEADERS = ("origin", "sec-fetch-site")


class HostedSandbox(CodeRunner, Protocol):
    """A sandbox that can be served. `queued`: cells that wait for their turn; `sessions`: id → what is known of it."""

    @property
    def queued(self) -> int: ...

    @property
    def isolation_level(self) -> str: ...

    async def start(self) -> None: ...

    def sessions(self) -> Mapping[str, Mapping[str, Any]]: ...


class SandboxApplication:
    """Answers requests with the sandbox it is given, whose life belongs to the caller; any server may carry them."""

    def __init__(self, sandbox: HostedSandbox, *, token: str = "", codec: JsonCodec = STANDARD_JSON) -> None:
        self._codec = codec
        self.run_id = uuid.uuid4().hex
        self._sandbox, self._token = sandbox, token
        self._once: SharedCalls[ExecutionResult] = SharedCalls(
            lambda result: len(result.stdout) + len(result.stderr) + 500
        )
        self._statuses: Counter[str] = Counter()
        self._failures = 0
        self._in_flight = 0

    async def close(self) -> None:
        await self._once.drop()

    async def answer(self, request: ApiRequest) -> ApiReply:
        if request.path == "/health":
            return self._wrong_method(request, "GET") or self._json_reply(self._health_fields())
        if (refused := self._refuse_stranger(request)) is not None:
            return refused
        if request.path == "/execute":
            return self._wrong_method(request, "POST") or await self._answer_execution(request)
        if request.path == SESSIONS:
            return self._wrong_method(request, "GET") or self._json_reply({"sessions": self._sandbox.sessions()})
        if request.path.startswith(f"{SESSIONS}/"):
            return self._wrong_method(request, "DELETE") or await self._delete_session(request)
        if request.path == "/metrics":
            return self._wrong_method(request, "GET") or self._json_reply(self._metrics_fields())
        return self._not_found(request)

    def _refuse_stranger(self, request: ApiRequest) -> ApiReply | None:
        header = request.headers.get("authorization", "")
        if self._token and not hmac.compare_digest(header.encode(), f"Bearer {self._token}".encode()):
            return self.refuse(
                401, "This sandbox needs a token: Authorization: Bearer …", (("WWW-Authenticate", "Bearer"),)
            )
        if any(name in request.headers for name in BROWSER_HEADERS):
            # Any page that is open in a browser on this machine can post to its loopback addresses.
            return self.refuse(403, "Web pages may not use the sandbox.")
        return None

    async def _answer_execution(self, request: ApiRequest) -> ApiReply:
        session_id, request_id = (request.headers.get(name.lower()) for name in (SESSION_HEADER, REQUEST_HEADER))
        self._in_flight += 1
        try:
            execution = read_execution(request.body, session_id, self._codec)
            if ONCE_HEADER.lower() in request.headers:
                execution = replace(execution, session_id=None)
            if request_id:
                key = f"{check_name(request_id, f'The header {REQUEST_HEADER}')} {session_id or ''}"
                result = await self._once.do(key, request.body, lambda: self._run_counted(execution))
            else:
                result = await self._run_counted(execution)
        except ExecutionRefusedError as error:
            return self.refuse(400, str(error))
        except SandboxError as error:
            self._failures += 1
            return self.refuse(503, str(error))
        finally:
            self._in_flight -= 1
        stateful = language(execution.language).stateful
        return ApiReply(200, write_result(result, stateful=stateful, run_id=self.run_id, codec=self._codec))

    async def _run_counted(self, execution: Execution) -> ExecutionResult:
        result = await self._sandbox.execute(execution)
        self._statuses[result.status] += 1
        return result

    async def _delete_session(self, request: ApiRequest) -> ApiReply:
        try:
            session_id = check_name(unquote(request.path.removeprefix(f"{SESSIONS}/")), "The session id")
            await self._once.drop(f" {session_id}")  # a cell whose client left might open the session again
            if session_id not in self._sandbox.sessions():
                return self.refuse(404, f"There is no session {session_id}.")
            await self._sandbox.delete_session(session_id)
        except ExecutionRefusedError as error:
            return self.refuse(400, str(error))
        except SandboxError as error:
            return self.refuse(503, str(error))
        return self._json_reply({"message": f"Session {session_id} is deleted."})

    def refuse(self, status: int, sentence: str, headers: HeaderFields = ()) -> ApiReply:
        """Return the reply `{"error": sentence}`."""
        text = sentence.encode("utf-8", "replace").decode()
        return ApiReply(status, self._codec.encode({"error": text}), headers)

    def _json_reply(self, value: Any) -> ApiReply:
        return ApiReply(200, self._codec.encode(value))

    def _not_found(self, request: ApiRequest) -> ApiReply:
        return self.refuse(404, f"There is nothing at {request.path[:200]}.")

    def _wrong_method(self, request: ApiRequest, allowed: str) -> ApiReply | None:
        """Return the reply 405 unless the method is the one that is allowed; where GET is, HEAD is too."""
        if request.method == allowed or (request.method == "HEAD" and allowed == "GET"):
            return None
        sentence = f"{request.path[:200]} accepts {allowed}, not {request.method}."
        return self.refuse(405, sentence, (("Allow", allowed),))

    def _health_fields(self) -> dict[str, Any]:
        return {
            "status": "healthy",
            "worker": 0,
            "run_id": self.run_id,
            "isolation_level": self._sandbox.isolation_level,
        }

    def _metrics_fields(self) -> dict[str, Any]:
        return {
            "in_flight": self._in_flight,
            "queue_length": self._sandbox.queued,
            "executions": self._statuses.total(),
            "timeouts": self._statuses["timeout"],
            "statuses": dict(self._statuses),
            "failures": self._failures,
            "sessions": dict(self._sandbox.sessions()),
        }
