# SPDX-License-Identifier: Apache-2.0
"""A process that a supervisor has started, and what it is waiting for."""

from __future__ import annotations

import os
import socket
import time

from newskills.sandbox.inside import worker
from newskills.sandbox.inside.capture import Capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FIRST_LOOK = 0.02


class Process:
    """The worker, or a program under way: its id, pipes, and how it ended."""

    def __init__(self, start: Callable[[int, int, socket.socket | None], None], *, talks: bool) -> None:
        out, out_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        err, err_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for end in (out_end, err_end):
            os.set_blocking(end, True)
        self.control: socket.socket | None = None
        far: socket.socket | None = None
        if talks:
            self.control, far = socket.socketpair()
        self.status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                start(out_end, err_end, far)
            finally:
                os._exit(71)
        for end in (out_end, err_end):
            os.close(end)
        if far is not None and self.control is not None:
            far.close()
            self.control.setblocking(False)
        self.out, self.err = Capture(out), Capture(err)

    def ended(self, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        self.out.close()
        self.err.close()
        if self.control is not None:
            self.control.close()


class Watch:
    """What one request is waiting for, and what came of it."""

    def __init__(self, process: Process, message: dict[str, Any], nonce: bytes, request: bytes) -> None:
        self.process = process
        self.began = time.monotonic()
        self.deadline = self.began + message["timeout"]
        self.next_look = self.began + FIRST_LOOK
        self.nonce, self.unsent, self.reply = nonce, memoryview(request), b""
        self.excess = ""
        self.idle = self.timed_out = self.interrupted = self.corrupt = self.hung_up = False

    def send(self, control: socket.socket) -> None:
        """As much of the request as the worker's socket takes now. Raises OSError."""
        self.unsent = self.unsent[control.send(self.unsent) :]

    @property
    def answered(self) -> bool:
        return bool(self.nonce) and len(self.reply) == worker.REPLY.size

    @property
    def over(self) -> bool:
        return self.answered or self.corrupt or self.process.status is not None
