# SPDX-License-Identifier: Apache-2.0
"""The sandbox inside this process: sessions by name, a few made ahead of time, a bounded number of cells at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from newskills_sandbox import memory
from newskills_sandbox.errors import ExecutionRefusedError, SandboxError
from newskills_sandbox.execution import Execution, ExecutionResult
from newskills_sandbox.languages import Language, language
from newskills_sandbox.launch import LaunchedZygote, launch_zygote
from newskills_sandbox.settings import SandboxSettings
from newskills_sandbox.turns import Turn, Turns
from newskills_sandbox.zygote import Channel

EXCESS = {
    "memory": "used more memory",
    "disk": "wrote more files",
    "processes": "started more processes",
}
AHEAD = 4
"""Sessions kept ready of each kind that was asked for."""
RELIEF_SECONDS = 0.5
"""Between two looks at the memory of the machine."""
SLACK = 20.0
"""Seconds past the deadline and its grace after which a supervisor is given up."""


class _Session:
    """One session: its channel and one cell at a time."""

    def __init__(self, channel: Channel, launched: LaunchedZygote, backend: str) -> None:
        self.channel, self.launched, self.backend = channel, launched, backend
        self.lock = asyncio.Lock()
        self.created = self.last_used = time.time()
        self.running = False


class AsyncSandbox:
    """Implements `CodeRunner` with processes of this machine. Belongs to the loop that starts it.

    `level` says what isolates the code once `start` has returned. Raises SandboxError where no level can be had.
    """

    def __init__(self, settings: SandboxSettings | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._settings = settings = settings or SandboxSettings()
        self._environ = os.environ if environ is None else environ
        self._launched: LaunchedZygote | None = None
        self._starting = asyncio.Lock()
        self._sessions: dict[str, _Session] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._ready: dict[bool, deque[asyncio.Task[Channel]]] = {True: deque(), False: deque()}
        usual = settings.concurrency or 2 * (os.cpu_count() or 1)
        enough = usual * settings.limits.memory_mb << 20
        self._turns = Turns(usual, strict=settings.concurrency > 0, ample=lambda: memory.is_ample(enough))
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self.executions = self.timeouts = 0

    @property
    def isolation_level(self) -> str:
        if self._launched:
            return self._launched.isolation_level
        return ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Modules that the code would usually find loaded, but that are not installed."""
        if self._launched:
            return self._launched.missing
        return ()

    @property
    def queued(self) -> int:
        """Cells that wait for their turn."""
        return self._turns.waiting

    async def start(self) -> None:
        """Start the sandbox, unless it runs. Raises SandboxError."""
        await self._launched_zygote()

    async def execute(self, execution: Execution) -> ExecutionResult:
        """Execute code in this sandbox. Raises ExecutionRefusedError, SandboxError."""
        spoken = language(execution.language)
        request = self._check_request(spoken, execution)
        launched = await self._launched_zygote()
        if execution.session_id is None:
            return await self._execute_once(launched, spoken, execution, request)
        return await self._in_session(execution.session_id, launched, spoken, execution, request)

    async def delete_session(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await self._end_channel(session.channel, session.launched)

    def sessions(self) -> dict[str, dict[str, Any]]:
        """Return id → backend, created and last_used (seconds since 1970), alive."""
        return {
            name: {
                "backend": session.backend,
                "created": session.created,
                "last_used": session.last_used,
                "alive": not session.channel.closed,
            }
            for name, session in self._sessions.items()
        }

    async def close(self) -> None:
        """End all sessions and wait until their processes are gone."""
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._sessions.clear()
        if self._launched is not None:
            await self._launched.close()

    def _check_request(self, spoken: Language, execution: Execution) -> dict[str, Any]:
        longest = self._settings.limits.timeout
        if not (isinstance(execution.timeout, int | float) and 0 < execution.timeout <= longest):
            raise ExecutionRefusedError(
                f"The timeout must be above 0 and at most {longest:g} seconds, not {execution.timeout!r}."
            )
        if not 0 <= execution.max_output_characters <= 10_000_000:
            raise ExecutionRefusedError(
                f"max_output_characters must be from 0 to 10,000,000, not {execution.max_output_characters}."
            )
        try:
            execution.code.encode()
            execution.std_input.encode()
        except UnicodeEncodeError as error:
            raise ExecutionRefusedError(
                "The code contains half of a surrogate pair, which is not valid text."
            ) from error
        return {
            **spoken.request(execution, self._settings),
            "stdin": execution.std_input,
            "timeout": execution.timeout,
            "characters": execution.max_output_characters,
        }

    async def _launched_zygote(self) -> LaunchedZygote:
        async with self._starting:
            if self._closed:
                raise SandboxError("The sandbox is closed.")
            if self._launched is None or self._launched.zygote.closed:
                if self._launched is not None:
                    await self._launched.close()
                self._ready = {True: deque(), False: deque()}
                self._launched = await launch_zygote(self._settings, self._environ)
                if self._settings.session_timeout:
                    self._keep_task(asyncio.create_task(self._expire_sessions()))
                self._keep_task(asyncio.create_task(self._relieve_memory(self._launched)))
            return self._launched

    async def _execute_once(
        self, launched: LaunchedZygote, spoken: Language, execution: Execution, request: dict[str, Any]
    ) -> ExecutionResult:
        async with self._turns.turn(whole=not spoken.stateful) as turn:
            channel = await self._take_channel(launched, eager=spoken.stateful)
            try:
                outcome = await self._ask_channel(launched, channel, execution, request, turn)
                return self._make_result(launched, execution, outcome)
            finally:
                self._keep_task(asyncio.create_task(self._end_channel(channel, launched)))

    async def _in_session(
        self, name: str, launched: LaunchedZygote, spoken: Language, execution: Execution, request: dict[str, Any]
    ) -> ExecutionResult:
        session, made = await self._find_session(name, launched, spoken)
        await session.lock.acquire()
        work = asyncio.create_task(self._ask_locked(session, execution, request))
        self._keep_task(work)
        try:
            outcome = await asyncio.shield(work)
        except asyncio.CancelledError:
            if session.running:
                session.channel.interrupt()
            else:  # it still waits for its turn, which it must not take
                work.cancel()
            raise
        finally:
            if session.channel.closed and self._sessions.get(name) is session:
                await self.delete_session(name)
        result = self._make_result(session.launched, execution, outcome)
        result.session_id = name
        result.new_session_created = made or bool(outcome.get("fresh"))
        return result

    async def _ask_locked(
        self, session: _Session, execution: Execution, request: dict[str, Any]
    ) -> dict[str, Any]:
        """Ask and wait; this goes on when its caller is cancelled: the answer must be read before the next question."""
        try:
            async with self._turns.turn(whole=not language(execution.language).stateful) as turn:
                session.running = True
                outcome = await self._ask_channel(session.launched, session.channel, execution, request, turn)
            session.last_used = time.time()
            return outcome
        finally:
            session.running = False
            session.lock.release()

    async def _find_session(self, name: str, launched: LaunchedZygote, spoken: Language) -> tuple[_Session, bool]:
        """Return the session of that name, and whether it was made just now."""
        opening = self._opening.setdefault(name, asyncio.Lock())
        try:
            async with opening:
                session = self._sessions.get(name)
                if session is not None and not session.channel.closed and session.launched is launched:
                    return session, False
                if session is None and len(self._sessions) >= self._settings.max_sessions:
                    raise SandboxError(
                        f"{len(self._sessions)} sessions are open, which is the limit.",
                        hint="Delete some sessions, or start the server with a higher --max_sessions.",
                    )
                channel = await self._take_channel(launched, eager=spoken.stateful)
                session = self._sessions[name] = _Session(channel, launched, spoken.name)
                return session, True
        finally:
            if not opening.locked():
                self._opening.pop(name, None)

    async def _take_channel(self, launched: LaunchedZygote, *, eager: bool) -> Channel:
        """Return a session that is ready, or wait until it is; others are made for those who come next."""
        ready = self._ready[eager]
        while ready and ready[0].done() and (ready[0].exception() or ready[0].result().closed):
            ready.popleft()
        task = ready.popleft() if ready else self._make_channel(launched, eager)
        while len(ready) < AHEAD and not self._closed:
            ready.append(self._make_channel(launched, eager))
        return await asyncio.shield(task)

    def _make_channel(self, launched: LaunchedZygote, eager: bool) -> asyncio.Task[Channel]:
        task = asyncio.create_task(launched.session(eager=eager))
        self._keep_task(task)
        return task

    async def _ask_channel(
        self, launched: LaunchedZygote, channel: Channel, execution: Execution, request: dict[str, Any], turn: Turn
    ) -> dict[str, Any]:
        launched.settle(channel.number)
        channel.on_idle = turn.rest
        try:
            async with asyncio.timeout(execution.timeout + SLACK) as limit:
                if not turn.whole:
                    _let_stop(turn, channel, limit)
                outcome = await channel.ask(request)
        except TimeoutError:
            channel.close()
            await launched.zygote.kill(channel.number)
            raise SandboxError("The sandbox missed a deadline; the session was ended.") from None
        finally:
            turn.keep_running()
        if outcome is None:
            if launched.zygote.closed:
                raise SandboxError("The sandbox ended while code was running in it.")
            outcome = {"status": "crashed", "exit": None, "out": "", "err": "", "seconds": 0.0, "excess": ""}
        # Now, and not when somebody reads the result: the session's next request may have begun by then.
        outcome["killed"] = launched.out_of_memory(channel.number)
        return outcome

    def _make_result(
        self, launched: LaunchedZygote, execution: Execution, outcome: dict[str, Any]
    ) -> ExecutionResult:
        self.executions += 1
        if outcome.get("failed"):
            raise SandboxError(f"{execution.language} could not start: {outcome['failed']}.")
        status = "out_of_memory"
        if not outcome["killed"]:
            status = language(execution.language).status(outcome)
        self.timeouts += status == "timeout"
        return ExecutionResult(
            status=status,
            stdout=outcome["out"],
            stderr=outcome["err"] + _status_notice(status, execution, outcome),
            exit_code=outcome["exit"],
            isolation_level=launched.isolation_level,
            seconds=outcome["seconds"],
        )

    async def _end_channel(self, channel: Channel, launched: LaunchedZygote) -> None:
        channel.close()
        await launched.zygote.await_end(channel.number)
        await asyncio.to_thread(launched.forget, channel.number)

    async def _expire_sessions(self) -> None:
        patience = self._settings.session_timeout
        while True:
            await asyncio.sleep(min(patience / 4, 30.0))
            for name, session in tuple(self._sessions.items()):
                if not session.lock.locked() and time.time() - session.last_used > patience:
                    await self.delete_session(name)

    async def _relieve_memory(self, launched: LaunchedZygote) -> None:
        """End, while the machine is short of memory, end idle sessions, the longest idle first."""
        while not launched.zygote.closed:
            await asyncio.sleep(RELIEF_SECONDS)
            while memory.is_short(self._settings.free_memory_mb) and (idle := self._longest_idle()):
                await self.delete_session(idle)

    def _longest_idle(self) -> str | None:
        idle = [name for name, session in self._sessions.items() if not session.lock.locked()]
        return min(idle, key=lambda name: self._sessions[name].last_used, default=None)

    def _keep_task(self, task: asyncio.Task[Any]) -> None:
        """Hold a reference to the task while it runs, and retrieve its exception."""
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            with contextlib.suppress(SandboxError):
                task.exception()


def _let_stop(turn: Turn, channel: Channel, limit: asyncio.Timeout) -> None:
    """Let a cell be stopped: the time in which it must be answered stands still as well."""
    now = asyncio.get_running_loop().time
    left = 0.0

    def stop() -> None:
        nonlocal left
        if not limit.expired():
            left = (limit.when() or now()) - now()
            limit.reschedule(None)
        channel.stop()

    def go() -> None:
        if not limit.expired():
            limit.reschedule(now() + left)
        channel.go()

    turn.let_stop(stop, go)


def _status_notice(status: str, execution: Execution, outcome: Mapping[str, Any]) -> str:
    """Return the notice that follows the code's own errors; empty where there is none."""
    if status == "timeout":
        return f"Execution timed out after {execution.timeout} seconds\n"
    if status == "out_of_memory":
        what = EXCESS[outcome["excess"] or "memory"]
        return f"The code {what} than a session may have and was stopped.\n"
    if status == "crashed":
        code = outcome["exit"]
        if code is None:
            how = "was stopped"
        else:
            how = f"ended by signal {-code}" if code < 0 else f"exited with code {code}"
        return f"The process {how} before the code was finished; its state is lost.\n"
    return ""
