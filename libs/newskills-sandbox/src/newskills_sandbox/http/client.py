# SPDX-License-Identifier: Apache-2.0
"""The client's side of the HTTP API: of our own server, and of NeMo-Skills'."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import uuid
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote

from newskills_sandbox.errors import ExecutionRefusedError, SandboxError
from newskills_sandbox.execution import Execution, ExecutionResult
from newskills_sandbox.http.json_codec import STANDARD_JSON, JsonCodec
from newskills_sandbox.http.messages import HeaderFields
from newskills_sandbox.http.wire import ONCE_HEADER, REQUEST_HEADER, SESSION_HEADER, is_name, write_execution
from newskills_sandbox.languages import language
from newskills_sandbox.variables import TOKEN_VARIABLE

TRIES = 3
TRANSPORT = 5.0
"""Seconds that an answer may take beyond the cell's own timeout before the server is asked whether it is there."""
PATIENCE = 1200.0
"""Seconds that a cell may wait for its turn at a server that says it is there."""
SHORT = 10.0


class ExchangeError(Exception):
    """No answer came. `message` says why; where `broken`, the same request may be sent again."""

    def __init__(self, message: str, *, broken: bool = False) -> None:
        super().__init__(message)
        self.message, self.broken = message, broken


class ExchangeTimeoutError(ExchangeError):
    """No answer came in time."""


class HttpAnswer(Protocol):
    """A status and a body."""

    @property
    def status(self) -> int: ...

    @property
    def body(self) -> bytes: ...


class Exchange(Protocol):
    """Carries requests to one server. Raises ExchangeError where no answer comes."""

    async def send(
        self, method: str, path: str, timeout: float, body: bytes | None = None, headers: HeaderFields = ()
    ) -> HttpAnswer: ...

    async def close(self) -> None: ...


class SandboxClient:
    """Implements `CodeRunner` over HTTP. Belongs to the event loop of its first request.

    A broken connection is tried three times under one request id, so that our own server runs a cell once. An answer
    that does not come within the cell's timeout and five seconds means a long queue, as long as the server answers
    `GET /health`; else it is a SandboxError (the sample ends unscored) and never the status `timeout`, which only the
    server can tell. Another run id than at the beginning is a SandboxError: another server has taken the port, or the
    first one was restarted and has lost all sessions.
    """

    def __init__(self, address: str, exchange: Exchange, codec: JsonCodec = STANDARD_JSON) -> None:
        self.address = address
        self._exchange, self._codec = exchange, codec
        self._run_id: str | None = None
        self._starting = asyncio.Lock()
        self._sessions: set[str] = set()
        self._endings: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Ask the server for the id of its run, unless it is known. Raises SandboxError where no sandbox answers."""
        async with self._starting:
            if self._run_id is None:
                self._run_id = _text_field(await self.health(), "run_id")

    async def health(self) -> dict[str, Any]:
        """Return the answer to `GET /health`. Raises SandboxError."""
        try:
            response = await self._exchange.send("GET", "/health", SHORT)
        except ExchangeError as error:
            raise self._unreachable_error(error) from error
        values = self._json_object(response)
        if response.status != 200 or values.get("status") != "healthy":
            raise SandboxError(f"The program at {self.address} is not a ready sandbox ({response.status}).")
        return values

    async def execute(self, execution: Execution) -> ExecutionResult:
        """Execute code on the server. Raises ExecutionRefusedError, SandboxError."""
        await self.start()
        stateful = language(execution.language).stateful
        if execution.session_id is not None or not stateful:
            return await self._execute_once(execution, execution.session_id, stateful)
        name = uuid.uuid4().hex
        try:
            return await self._execute_once(execution, name, stateful)
        finally:
            if not self._run_id:  # a server that does not know X-Session-Once
                self._end_later(name)

    async def delete_session(self, session_id: str) -> None:
        """Delete the session on the server. Raises SandboxError."""
        name = wire_name(session_id)
        self._sessions.discard(name)
        try:
            response = await self._exchange.send("DELETE", f"/sessions/{quote(name, safe='')}", SHORT)
        except ExchangeError as error:
            raise self._unreachable_error(error) from error
        if response.status not in (200, 404):
            raise self._refusal_error(response)

    async def close(self) -> None:
        """End the sessions that were not deleted, where the server still listens, and close the connections."""
        for name in tuple(self._sessions):
            self._end_later(name)
        await asyncio.gather(*self._endings, return_exceptions=True)
        await self._exchange.close()

    async def _execute_once(self, execution: Execution, session_id: str | None, stateful: bool) -> ExecutionResult:
        headers: list[tuple[str, str]] = [(REQUEST_HEADER, uuid.uuid4().hex)]
        if session_id is not None:
            name = wire_name(session_id)
            headers.append((SESSION_HEADER, name))
            if execution.session_id is None:
                headers.append((ONCE_HEADER, "1"))
            else:
                self._sessions.add(name)
        response = await self._post_patiently(write_execution(execution, self._codec), headers, execution.timeout)
        if response.status != 200:
            raise self._refusal_error(response)
        values = self._json_object(response)
        self._check_run(_text_field(values, "run_id"))
        if not isinstance(values.get("process_status"), str):
            raise SandboxError(f"{self.address} answered without a process_status: it is not a sandbox.")
        exit_code, seconds = values.get("exit_code"), values.get("seconds")
        return ExecutionResult(
            status=values["process_status"],
            stdout=_text_field(values, "stdout"),
            stderr=_text_field(values, "stderr"),
            session_id=execution.session_id,
            new_session_created=stateful and values.get("new_session_created") is True,
            exit_code=exit_code if isinstance(exit_code, int) else None,
            isolation_level=_text_field(values, "isolation_level"),
            seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        )

    async def _post_patiently(self, body: bytes, headers: HeaderFields, timeout: float) -> HttpAnswer:
        until = asyncio.get_running_loop().time() + timeout + PATIENCE
        failures = 0
        while True:
            try:
                return await self._exchange.send("POST", "/execute", timeout + TRANSPORT, body, headers)
            except ExchangeTimeoutError as error:
                if not self._run_id or asyncio.get_running_loop().time() > until:
                    raise self._unreachable_error(error) from error
                self._check_run(_text_field(await self.health(), "run_id"))
            except ExchangeError as error:
                failures += 1
                if not error.broken or failures == TRIES:
                    raise self._unreachable_error(error) from error
                await asyncio.sleep(min(1.0, 0.25 * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0))  # noqa: S311 - no secret

    def _check_run(self, run_id: str) -> None:
        if run_id != self._run_id:
            raise SandboxError(
                f"The sandbox at {self.address} is not the one that answered before (run "
                f"{run_id or 'without an id'} instead of {self._run_id or 'one without an id'}): it was "
                "restarted, or another program took its port."
            )

    def _end_later(self, name: str) -> None:
        task = asyncio.create_task(self._delete_session(name))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _delete_session(self, name: str) -> None:
        """Delete a session and ignore failures: a session that remains costs the server memory, but makes no result
        wrong."""
        with contextlib.suppress(SandboxError):
            await self.delete_session(name)

    def _json_object(self, response: HttpAnswer) -> dict[str, Any]:
        """Return the JSON object of the body, or an empty one."""
        try:
            values = self._codec.decode(response.body)
        except ValueError:
            return {}
        if isinstance(values, dict):
            return values
        return {}

    def _unreachable_error(self, error: ExchangeError) -> SandboxError:
        return SandboxError(f"The sandbox at {self.address} cannot be reached: {error.message}")

    def _refusal_error(self, response: HttpAnswer) -> SandboxError:
        reason = _text_field(self._json_object(response), "error") or f"status {response.status}"
        if response.status in (400, 413, 422):
            return ExecutionRefusedError(reason)
        if response.status == 401:
            hint = f"Set {TOKEN_VARIABLE} to the server's token."
            return SandboxError(f"The sandbox at {self.address} says: {reason}", hint=hint)
        return SandboxError(f"The sandbox at {self.address} failed: {reason}")


def wire_name(session_id: str) -> str:
    """Return `session_id`, or where a header cannot hold it a name made from it."""
    if is_name(session_id):
        return session_id
    return "x-" + hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


def _text_field(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if isinstance(value, str):
        return value
    return ""
