# SPDX-License-Identifier: Apache-2.0
"""The host's side of the zygote and of each session: sockets on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from newskills_sandbox.errors import SandboxError
from newskills_sandbox.inside.wire import HEADER, pack

START_PATIENCE = 60.0
STOP_PATIENCE = 10.0
MESSAGE = 1 << 16
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[2]); "
    "from newskills_sandbox.inside import zygote; sys.path.pop(0); zygote.main(int(sys.argv[1]))"
)
_PACKAGE_FOLDER = str(Path(__file__).parents[1])


class Channel(asyncio.Protocol):
    """One session's supervisor: a question, an answer, in order. `closed` once it is gone.

    `on_idle` is told when all that a question has started only waits (True), and when it runs again.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = False
        self.on_idle: Callable[[bool], None] | None = None
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        # The first word may come before anybody has asked for it.
        self._ready: asyncio.Future[dict[str, Any] | None] = asyncio.get_running_loop().create_future()
        self._waiting = deque([self._ready])

    async def ready(self) -> None:
        """Wait until the session is ready. Raises SandboxError where it could not be made."""
        try:
            async with asyncio.timeout(START_PATIENCE):
                answer = await self._ready
        except TimeoutError:
            self.close()
            raise SandboxError(f"A sandbox session did not start within {START_PATIENCE:g} s.") from None
        if answer is None or "failed" in answer:
            raise SandboxError(
                f"A sandbox session did not start: {(answer or {}).get('failed', 'it ended at once')}."
            )

    async def ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the supervisor; None where the supervisor ended instead of answering."""
        if self._transport is None or self.closed:
            return None
        self._transport.write(pack(message))
        return await self._expect_answer()

    def interrupt(self) -> None:
        """End the request under way as if its time were up."""
        self._tell_supervisor("interrupt")

    def stop(self) -> None:
        """Stop the cell under way, and its clock, until `go`."""
        self._tell_supervisor("stop")

    def go(self) -> None:
        self._tell_supervisor("go")

    def _tell_supervisor(self, what: str) -> None:
        if self._transport is not None and not self.closed:
            self._transport.write(pack({"do": what}))

    def close(self) -> None:
        """Close the connection: the supervisor and everything below it end."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= HEADER.size:
            end = HEADER.size + HEADER.unpack_from(self._data)[0]
            if len(self._data) < end:
                return
            message = json.loads(self._data[HEADER.size : end])
            del self._data[:end]
            if "idle" not in message:
                self._deliver_answer(message)
            elif self.on_idle is not None:
                self.on_idle(message["idle"])

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        while self._waiting:
            self._deliver_answer(None)

    def _deliver_answer(self, message: dict[str, Any] | None) -> None:
        if self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(message)

    async def _expect_answer(self) -> dict[str, Any] | None:
        if self.closed:
            return None
        future: asyncio.Future[dict[str, Any] | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future


class Zygote:
    """The process that sessions are forked from. Belongs to the loop that started it."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, log: IO[bytes]) -> None:
        self._process, self._control, self._log = process, control, log
        self._loop = asyncio.get_running_loop()
        self._ended: dict[int, asyncio.Event] = {}
        self._channels: dict[int, Channel] = {}
        self._numbers = 0
        self.closed = False
        self._first: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._loop.add_reader(control.fileno(), self._read_messages)

    @classmethod
    async def start(cls, python: str, settings: Mapping[str, Any]) -> Zygote:
        """Start a zygote process. Raises SandboxError with the kernel's or the interpreter's reason."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        argv = [python, "-I", "-B", "-c", _BOOT, str(far.fileno()), _PACKAGE_FOLDER]
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=dict(settings["environment"]),
                cwd="/",
                pass_fds=(far.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            near.close()
            log.close()
            raise SandboxError(f"The sandbox's interpreter {python} does not start: {error.strerror}.") from error
        finally:
            far.close()
        near.setblocking(False)
        near.send(json.dumps(dict(settings)).encode())
        zygote = cls(process, near, log)
        try:
            await zygote._await_start()
        except BaseException:
            await zygote.close()
            raise
        return zygote

    async def _await_start(self) -> None:
        try:
            async with asyncio.timeout(START_PATIENCE):
                answer = await self._first
        except TimeoutError as error:
            raise SandboxError(f"The sandbox did not start within {START_PATIENCE:g} s.") from error
        if "error" in answer:
            raise SandboxError(f"The sandbox cannot start: {answer['error']}{self._last_words()}.")

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read()[-4000:].decode(errors="replace").strip().splitlines()
        if lines:
            return f" ({lines[-1]})"
        return ""

    async def spawn(self, message: dict[str, Any], groups: Sequence[int] = ()) -> Channel:
        """Start a new session, and return its channel, not yet `ready`. `groups`: descriptors of control groups that it
        enters.

        Raises SandboxError where the sandbox is gone.
        """
        self._numbers += 1
        number = self._numbers
        near, far = socket.socketpair()
        self._ended[number] = asyncio.Event()
        try:
            text = json.dumps({"do": "spawn", "session": number, **message}).encode()
            await self._send_message(text, [far.fileno(), *groups])
        except OSError as error:
            near.close()
            raise SandboxError(f"The sandbox is gone: {error.strerror}.") from error
        finally:
            far.close()
        near.setblocking(False)
        channel = self._channels[number] = Channel(number)
        await self._loop.create_connection(lambda: channel, sock=near)
        return channel

    async def kill(self, number: int) -> None:
        """Kill a supervisor that does not answer."""
        with contextlib.suppress(OSError):
            await self._send_message(json.dumps({"do": "kill", "session": number}).encode(), [])

    async def await_end(self, number: int) -> None:
        """Wait until session `number` and all its processes are gone."""
        event = self._ended.get(number)
        if event is not None and not self.closed:
            await event.wait()

    async def close(self) -> None:
        """End all sessions."""
        self._note_gone()
        for channel in self._channels.values():  # not all have seen their end yet, and the loop may stop at once
            channel.close()
        await asyncio.to_thread(self._await_exit)
        self._log.close()

    def _await_exit(self) -> None:
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def _send_message(self, data: bytes, descriptors: list[int]) -> None:
        if self.closed:
            raise OSError(0, "its process has ended")
        while True:
            try:
                socket.send_fds(self._control, [data], descriptors)
                return
            except BlockingIOError:
                await asyncio.sleep(0.001)

    def _read_messages(self) -> None:
        try:
            data = self._control.recv(MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._note_gone()
            return
        message = json.loads(data)
        if "ended" in message:
            self._channels.pop(message["ended"], None)
            event = self._ended.pop(message["ended"], None)
            if event is not None:
                event.set()
        elif not self._first.done():
            self._first.set_result(message)

    def _note_gone(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if not self._first.done():
            self._first.set_result({"error": "its process ended"})
        for event in self._ended.values():
            event.set()
        self._ended.clear()


def sandbox_environment(python: str) -> dict[str, str]:
    """Return all that the sandbox's processes know of an environment: nothing of ours, and where `python` is."""
    return {
        "PATH": f"{Path(python).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/sandbox",
        "LANG": "C.UTF-8",
        "USER": "sandbox",
        "TMPDIR": "/tmp",  # noqa: S108 - of the session's own tree
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }
