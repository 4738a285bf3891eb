# SPDX-License-Identifier: Apache-2.0
"""One program of this machine, run to its end or its deadline, its output bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import IO

from msgspec import Struct

from newskills.base.environment import MIB

CHUNK = 1 << 16
LAST_WORDS = 5.0
"""Seconds for the pipe to close once a program has ended; what it started may hold it open for longer."""
LONGEST_WORD = 100_000
"""Bytes of one argument; Linux allows 131,072 (MAX_ARG_STRLEN)."""


class EndedProgram(Struct, frozen=True, kw_only=True):
    """`exit_code` is None where the deadline came first."""

    exit_code: int | None
    output: bytes
    omitted: int
    seconds: float

    @property
    def last_line(self) -> str:
        return last_line(self.output)


def last_line(output: bytes | str, nothing: str = "no output") -> str:
    """Return the last line of a program's output, fit to be shown; `nothing` where there is none."""
    if isinstance(output, bytes):
        output = output.decode("utf-8", "replace")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if lines:
        return "".join(sign if sign.isprintable() else " " for sign in lines[-1])[:300]
    return nothing


class BoundedOutput:
    """The first and the last bytes of a stream, at most `limit` together."""

    def __init__(self, limit: int) -> None:
        self._room = limit // 2
        self._tail_limit = limit - self._room
        self._head = bytearray()
        self._tail = bytearray()
        self.omitted = 0

    def add(self, data: bytes) -> None:
        taken = data[: self._room - len(self._head)]
        self._head += taken
        self._tail += data[len(taken) :]
        if (beyond := len(self._tail) - self._tail_limit) > 0:
            del self._tail[:beyond]
            self.omitted += beyond

    def bytes(self) -> bytes:
        return bytes(self._head + self._tail)


async def run_program(
    argv: Sequence[str],
    *,
    timeout: float,
    environ: Mapping[str, str],
    stdin: bytes | IO[bytes] = b"",
    stdout: IO[bytes] | None = None,
    max_output: int = MIB,
) -> EndedProgram:
    """Run a program; keep standard output and error together, unless `stdout` takes the first. Raises OSError where it
    cannot start.

    At the deadline, and where the caller is cancelled, it is killed with its process group.
    """
    began = time.monotonic()
    kept = BoundedOutput(max_output)
    async with _open_pipe(kept) as (write_end, closed):
        # Not by the event loop: what uvloop starts passes its pipes on, and the monitor of a container keeps them.
        process = subprocess.Popen(
            list(argv),
            stdin=_stdin_argument(stdin),
            stdout=write_end if stdout is None else stdout,
            stderr=write_end,
            env=dict(environ),
            cwd=tempfile.gettempdir(),  # where memory ran out, podman's monitor leaves a file there
            start_new_session=True,
        )
        write_end.close()
        writing = asyncio.create_task(_write_input(process, stdin))
        ended = asyncio.create_task(_wait_for_end(process.pid))
        try:
            await asyncio.wait((ended,), timeout=timeout)
        finally:
            done = ended.done()
            if not done:
                kill_group(process.pid)
                await ended
            process.wait()
            await writing
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(closed.wait(), LAST_WORDS)
    return EndedProgram(
        exit_code=process.returncode if done else None,
        output=kept.bytes(),
        omitted=kept.omitted,
        seconds=time.monotonic() - began,
    )


@contextlib.asynccontextmanager
async def _open_pipe(kept: BoundedOutput) -> AsyncIterator[tuple[IO[bytes], asyncio.Event]]:
    """Yield (end to write to, what is set where all who had it have closed it); what comes goes to `kept`.

    Not by `connect_read_pipe`: uvloop and the file would both close the number, which may be another file's by then.
    """
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    read_end, write_number = os.pipe()
    os.set_blocking(read_end, False)

    def take() -> None:
        try:
            data = os.read(read_end, CHUNK)
        except BlockingIOError:
            return
        kept.add(data)
        if not data:
            loop.remove_reader(read_end)
            closed.set()

    with os.fdopen(write_number, "wb", buffering=0) as write_end:
        loop.add_reader(read_end, take)
        try:
            yield write_end, closed
        finally:
            loop.remove_reader(read_end)
            os.close(read_end)


def _stdin_argument(stdin: bytes | IO[bytes]) -> int | IO[bytes]:
    if not isinstance(stdin, bytes):
        return stdin
    if stdin:
        return subprocess.PIPE
    return subprocess.DEVNULL


async def _write_input(process: subprocess.Popen[bytes], data: bytes | IO[bytes]) -> None:
    stream = process.stdin
    if stream is None or not isinstance(data, bytes):
        return

    def write() -> None:
        with contextlib.suppress(BrokenPipeError):  # it does not read what it is given
            stream.write(data)
        with contextlib.suppress(BrokenPipeError):
            stream.close()

    await asyncio.to_thread(write)


async def _wait_for_end(pid: int) -> None:
    """Return when the process has ended; it is not reaped."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(pid)
    try:
        loop.add_reader(descriptor, over.set)
        await over.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
