# SPDX-License-Identifier: Apache-2.0
"""A process that a supervisor has started, and what it is waiting for."""

from __future__ import annotations

import os
import signal
import socket
import time

from newskills_sandbox.inside import processes, worker
from newskills_sandbox.inside.capture import Capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

FIRST_LOOK = 0.02
NEVER = 1e6
CROWD = 4
"""Processes beside the worker that run at a time."""


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
        self._stopped_at = self._left = 0.0
        self.held: list[int] = []
        self.crowd: list[int] = []
        self.stopped = self.looked_at = False
        self.idle = self.timed_out = self.interrupted = self.corrupt = self.hung_up = False

    def send(self, control: socket.socket) -> None:
        """Send as much of the request as the worker's socket takes now. Raises OSError."""
        self.unsent = self.unsent[control.send(self.unsent) :]

    def stop(self, held: list[int]) -> None:
        """Stop the clock; `held` are the processes that stand still with it."""
        self._stopped_at = time.monotonic()
        self._left = self.deadline - self._stopped_at
        self.deadline, self.held, self.stopped = self._stopped_at + NEVER, held, True

    def go(self) -> None:
        """Let the clock go on, as if it had never stood still."""
        now = time.monotonic()
        self.began += now - self._stopped_at
        self.deadline, self.next_look = now + self._left, now + FIRST_LOOK
        self.held, self.stopped, self.idle = [], False, False

    def share_out(self, pids: Collection[int], running: Collection[int]) -> bool:
        """Let a few of a crowd run at a time, by turns, or it would take all processors from other sessions.

        `pids`: all processes of the session; `running`: those of them that run. The worker is left alone. True where
        any runs or would.
        """
        before = [pid for pid in self.crowd if pid in pids]
        waiting = [pid for pid in before if pid not in running]
        inline = [*waiting, *(pid for pid in running if pid != self.process.pid)]
        self.crowd = inline[CROWD:]
        for pid in self.crowd:
            if pid not in waiting:
                processes.send(pid, signal.SIGSTOP)
        for pid in before:  # though it runs: the signal to stop may only just be on its way
            if pid not in self.crowd:
                processes.send(pid, signal.SIGCONT)
        return bool(running or inline)

    @property
    def answered(self) -> bool:
        return bool(self.nonce) and len(self.reply) == worker.REPLY.size

    @property
    def over(self) -> bool:
        return self.answered or self.corrupt or self.process.status is not None
