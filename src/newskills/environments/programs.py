# SPDX-License-Identifier: Apache-2.0
"""One program of this machine, run to its end or its deadline, its output bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

from msgspec import Struct

from newskills.base.environment import MIB

CHUNK = 1 << 16
LAST_WORDS = 5.0
"""Seconds for a killed program's pipe to close; what it started may hold it open for longer."""
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
        """What it ended with, fit to be shown."""
        lines = [line.strip() for line in self.output.decode("utf-8", "replace").splitlines() if line.strip()]
        return "".join(sign if sign.isprintable() else " " for sign in lines[-1])[:300] if lines else "no output"


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
    """Standard output and error together, unless `stdout` takes the first. Raises OSError where it cannot start.

    At the deadline, and where the caller is cancelled, it is killed with its process group.
    """
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE if isinstance(stdin, bytes) and stdin else _given(stdin),
        stdout=asyncio.subprocess.PIPE if stdout is None else stdout,
        stderr=asyncio.subprocess.STDOUT if stdout is None else asyncio.subprocess.PIPE,
        env=dict(environ),
        cwd=tempfile.gettempdir(),  # where memory ran out, podman's monitor leaves a file there
        start_new_session=True,
    )
    kept = BoundedOutput(max_output)
    work = asyncio.gather(_write(process, stdin), _read(process, kept), process.wait())
    done = True
    try:
        await asyncio.wait_for(asyncio.shield(work), timeout)
    except TimeoutError:
        done = False
    finally:
        if not work.done():
            _kill(process)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(work, LAST_WORDS)
    return EndedProgram(
        exit_code=process.returncode if done else None,
        output=kept.bytes(),
        omitted=kept.omitted,
        seconds=time.monotonic() - began,
    )


def _given(stdin: bytes | IO[bytes]) -> int | IO[bytes]:
    return asyncio.subprocess.DEVNULL if isinstance(stdin, bytes) else stdin


async def _write(process: asyncio.subprocess.Process, data: bytes | IO[bytes]) -> None:
    if process.stdin is None or not isinstance(data, bytes):
        return
    with contextlib.suppress(ConnectionError):  # it does not read what it is given
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _read(process: asyncio.subprocess.Process, kept: BoundedOutput) -> None:
    stream = process.stdout or process.stderr
    assert stream is not None
    while data := await stream.read(CHUNK):
        kept.add(data)


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
