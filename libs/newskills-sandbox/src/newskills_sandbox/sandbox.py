# SPDX-License-Identifier: Apache-2.0
"""The sandbox for ordinary Python: no `await`, also in a notebook and inside of a running event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from newskills_sandbox import files
from newskills_sandbox.errors import SandboxError
from newskills_sandbox.execution import CodeRunner, Execution, ExecutionResult
from newskills_sandbox.replay import ReplayingSandbox
from newskills_sandbox.settings import SandboxSettings
from newskills_sandbox.variables import TOKEN_VARIABLE

T = TypeVar("T")

OUTPUT_CHARACTERS = 100_000
FILE_BYTES = 64 << 20


class Sandbox:
    """Runs code that a model wrote: in processes of this machine, or at a server.

    settings  how code is kept apart and what it may use, on this machine
    address   http://HOST:PORT of a server (`python -m newskills_sandbox serve`, or NeMo-Skills'), which has settings
              of its own; `token` is what it asks for (default: the variable NEWSKILLS_SANDBOX_TOKEN)
    restore   where a session was lost, run its finished cells again

    Use it with `with`, or call `close`. Threads may share one. Starts when code is run for the first time.
    """

    def __init__(
        self,
        settings: SandboxSettings | None = None,
        *,
        address: str = "",
        token: str = "",
        restore: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        runner = _make_runner(settings, address, token or environ.get(TOKEN_VARIABLE, ""), environ)
        self._runner = ReplayingSandbox(runner) if restore else runner
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def run(
        self,
        code: str,
        *,
        language: str = "python",
        timeout: float = 10.0,
        stdin: str = "",
        database: str = "",
        max_output_characters: int = OUTPUT_CHARACTERS,
    ) -> ExecutionResult:
        """Run `code` once and leave nothing. Raises ExecutionRefusedError, SettingsError, SandboxError."""
        return self.execute(
            Execution(
                code=code,
                language=language,
                timeout=timeout,
                std_input=stdin,
                database=database,
                max_output_characters=max_output_characters,
            )
        )

    def execute(self, execution: Execution) -> ExecutionResult:
        """Run one `Execution`, which has all options. Raises ExecutionRefusedError, SettingsError, SandboxError."""
        return self._wait_for(self._runner.execute(execution))

    def session(self) -> SandboxSession:
        """Return a new session, whose variables and files live from call to call."""
        return SandboxSession(self)

    def end_session(self, session_id: str) -> None:
        """End a session and everything it started; an unknown id is no error. Raises SandboxError."""
        self._wait_for(self._runner.delete_session(session_id))

    def close(self) -> None:
        """End all sessions, and wait until their processes are gone."""
        with self._starting:
            loop, self._loop, self._closed = self._loop, None, True
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._runner.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._running_loop(work))
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C while code runs ends the code
            raise

    def _running_loop(self, work: Coroutine[Any, Any, Any]) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._closed:
                work.close()
                raise SandboxError("The sandbox is closed.")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run_loop, args=(self._loop,), name="newskills-sandbox", daemon=True
                ).start()
            return self._loop


class SandboxSession:
    """Code that builds on what ran before, and its files. Paths are relative to the session's folder."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.id = uuid.uuid4().hex
        self._sandbox = sandbox

    def run(
        self,
        code: str,
        *,
        language: str = "ipython",
        timeout: float = 10.0,
        stdin: str = "",
        max_output_characters: int = OUTPUT_CHARACTERS,
        traceback_verbosity: str = "Plain",
    ) -> ExecutionResult:
        """Run a cell, or a program of another language that sees the same files.

        `new_session_created` in the result: what ran before is not there. Raises ExecutionRefusedError, SandboxError.
        """
        return self._sandbox.execute(
            Execution(
                code=code,
                language=language,
                timeout=timeout,
                session_id=self.id,
                std_input=stdin,
                max_output_characters=max_output_characters,
                traceback_verbosity=traceback_verbosity,
            )
        )

    def write_file(self, path: str, content: bytes | str) -> None:
        """Write a file, and the folders above it. Raises SandboxError where that is not possible there."""
        data = content.encode() if isinstance(content, str) else content
        for step in files.write_steps(path, data):
            files.check_step(self.run(step.code, language="python", stdin=step.stdin, timeout=files.SECONDS), path)

    def read_file(self, path: str, *, max_bytes: int = FILE_BYTES) -> bytes:
        """Return the content of a file. Raises SandboxError where there is none, or more than `max_bytes`."""
        content = b""
        while True:
            step = files.read_step(path, len(content))
            result = self.run(
                step.code, language="python", timeout=files.SECONDS, max_output_characters=files.CHARACTERS
            )
            piece = files.read_piece(result, path)
            content += piece
            if len(content) > max_bytes:
                raise SandboxError(f"{path} has more than {max_bytes:,} bytes.")
            if len(piece) < files.PIECE_BYTES:
                return content

    def files(self) -> dict[str, int]:
        """Return path → bytes of all files in the session's folder. Raises SandboxError."""
        step = files.listing_step()
        result = self.run(
            step.code, language="python", timeout=files.SECONDS, max_output_characters=files.CHARACTERS
        )
        return files.read_listing(result)

    def close(self) -> None:
        """End the session and everything it started. Raises SandboxError."""
        self._sandbox.end_session(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _make_runner(
    settings: SandboxSettings | None, address: str, token: str, environ: Mapping[str, str]
) -> CodeRunner:
    if not address:
        from newskills_sandbox.sessions import AsyncSandbox

        return AsyncSandbox(settings, environ)
    from newskills_sandbox.http.client import SandboxClient
    from newskills_sandbox.http.exchange import PlainExchange

    if settings is not None:
        raise SandboxError("A server has its own settings: give either settings or an address.")
    return SandboxClient(address, PlainExchange(address, token))


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
