# SPDX-License-Identifier: Apache-2.0
"""One process that is kept in a container and starts its commands, so that not each pays for a start of the engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Literal

from newskills.base.environment import MIB
from newskills.environments.engines.engine import INSIDE, Argv
from newskills.environments.programs import CHUNK, BoundedOutput, EndedProgram, kill_group

STARTING = 120.0
LARGEST_INPUT = MIB
"""The process inside holds the input of a command in its memory."""
KILLED = 137
_HEADER = 5
_MESSAGES = b"RBNOE"
_READY, _BEGUN, _NOT_BEGUN, _OUTPUT, _ENDED = _MESSAGES
_BOOT = 'exec(open(0, "rb", closefd=False).read({length}))'
"""Takes the program from its input: words of a process are seen by all others."""
Beginning = Literal["ready", "unfit", "ended", "late"]


class KeptProcess:
    """Of one container. Its messages have lengths, and their pipes are out of reach of commands (`inside.py`), so no
    output of a command is taken for a message."""

    def __init__(self, argv: Argv, environ: Mapping[str, str], errors: IO[bytes] | None = None) -> None:
        """Start the process; `argv`: what starts `words_of_kept` in the container; `errors` takes what the engine
        says. Raises OSError where the engine cannot be started."""
        read_end, write_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                bufsize=0,
                stdout=write_end,
                stderr=errors or subprocess.DEVNULL,
                env=dict(environ),
                cwd=tempfile.gettempdir(),
                start_new_session=True,
            )
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        assert self._process.stdin is not None
        self._requests = self._process.stdin
        os.set_blocking(read_end, False)
        self._read_end = read_end
        self._buffer = bytearray()
        self._changed = asyncio.Event()
        self._output = BoundedOutput(0)
        self._said: set[int] = set()
        self._exit_code = 0
        self._lost = self._has_ended = False
        self._sending: asyncio.Task[None] | None = None
        asyncio.get_running_loop().add_reader(read_end, self._take)
        self._send(_inside_program())

    async def begin(self, timeout: float = STARTING) -> Beginning:
        """Return whether it can run commands. Without a Python in the image it is unfit or has ended; where there
        is no container either, it has ended."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._until({_READY}), timeout)
        if _READY in self._said:
            return "ready"
        if not self._lost:
            return "late"
        if self._has_ended:
            return "ended"
        return "unfit"

    async def run(
        self, command: bytes, folder: str, *, timeout: float, stdin: bytes, max_output: int
    ) -> EndedProgram | None:
        """Run a command; None where it has not begun. Where it did not end by itself, this process is closed."""
        if self._lost:
            return None
        began = time.monotonic()
        self._output, self._said = BoundedOutput(max_output), set()
        place = folder.encode("utf-8", "replace")
        request = b"%d %d %d\n" % (len(place), len(command), len(stdin)) + place + command + stdin
        self._sending = sending = asyncio.create_task(asyncio.to_thread(self._send, request))
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._until({_NOT_BEGUN, _ENDED}), timeout)
            in_time = bool(self._lost or self._said & {_NOT_BEGUN, _ENDED})
        finally:
            if not self._said & {_NOT_BEGUN, _ENDED}:
                self.close()
        await sending
        if in_time and (_NOT_BEGUN in self._said or _BEGUN not in self._said):
            return None
        code = self._exit_code if _ENDED in self._said else KILLED
        return EndedProgram(
            exit_code=code if in_time else None,
            output=self._output.bytes(),
            omitted=self._output.omitted,
            seconds=time.monotonic() - began,
        )

    @property
    def is_open(self) -> bool:
        return not self._lost

    def close(self) -> None:
        """End the engine's client; the process inside ends when it notices, or with its container."""
        self._lose()
        if self._process.returncode is None:
            kill_group(self._process.pid)
            self._process.wait()
            if self._sending is None or self._sending.done():
                self._requests.close()
            else:
                self._sending.add_done_callback(lambda _: self._requests.close())

    async def _until(self, wanted: set[int]) -> None:
        while not (self._lost or wanted & self._said):
            self._changed.clear()
            await self._changed.wait()

    def _send(self, request: bytes) -> None:
        with contextlib.suppress(OSError):
            view = memoryview(request)
            while view:
                view = view[self._requests.write(view) :]

    def _take(self) -> None:
        try:
            data = os.read(self._read_end, CHUNK)
        except BlockingIOError:
            return
        self._buffer += data
        while len(self._buffer) >= _HEADER and self._buffer[0] in _MESSAGES:
            end = _HEADER + int.from_bytes(self._buffer[1:_HEADER], "big")
            if len(self._buffer) < end:
                break
            self._hear(self._buffer[0], bytes(self._buffer[_HEADER:end]))
            del self._buffer[:end]
        if not data or (self._buffer and self._buffer[0] not in _MESSAGES):
            self._has_ended = not data
            self._lose()

    def _hear(self, kind: int, text: bytes) -> None:
        if kind == _OUTPUT:
            self._output.add(text)
        else:
            self._exit_code = int.from_bytes(text, "big")
            self._said.add(kind)
            self._changed.set()

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            asyncio.get_running_loop().remove_reader(self._read_end)
            os.close(self._read_end)
            self._changed.set()


def words_of_kept() -> Argv:
    return ["python3", "-I", "-S", "-c", _BOOT.format(length=len(_inside_program())), *INSIDE]


@cache
def _inside_program() -> bytes:
    return Path(__file__).with_name("inside.py").read_bytes()
