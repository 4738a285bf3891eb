# SPDX-License-Identifier: Apache-2.0
"""What somebody who runs several evaluations in one process holds of each.

A run finds its supervision in a context variable, so that nothing between the one who starts it and the engine need
know of it; a thread started by `asyncio.to_thread`, or in a copied context, inherits it. Without one, a run has the
process for itself: its own limit, the terminal, the signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from newskills.run.engine.progress import Snapshot

SCHEDULER_VARIABLES = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "KUBERNETES_SERVICE_HOST", "NEWSKILLS_JOB")
"""Variables of a job, whose endpoint may come up after it."""
_current: ContextVar[Supervision | None] = ContextVar("newskills_supervision", default=None)


class SharedLimit:
    """At most `limit` requests in flight over all runs that share it, each on its own thread and event loop.

    First come, first served, so that no run starves.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.active = 0
        self._lock = threading.Lock()
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    async def acquire(self) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self.active < self.limit:
                self.active += 1
                return
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append((loop, turn))
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                waits = (loop, turn) in self._waiting
                if waits:
                    self._waiting.remove((loop, turn))
            if not waits:
                self.release()  # the turn had come, or was on its way
            raise

    def release(self) -> None:
        """Release the turn and grant it to the next who waits; callable from any thread."""
        with self._lock:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                with contextlib.suppress(RuntimeError):  # that run's loop has ended
                    loop.call_soon_threadsafe(_grant_turn, turn)
                    return
            self.active -= 1


def _grant_turn(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class Supervision:
    """`console`: where the run speaks (None: standard error); `limit`: of requests, shared with other runs.

    `attended`: a person waits for the run, as for a command. `snapshot` is where the run stands, None before it has
    begun.
    """

    def __init__(
        self, *, console: Console | None = None, limit: SharedLimit | None = None, attended: bool = False
    ) -> None:
        self.console, self.limit, self.attended = console, limit, attended
        self.snapshot: Snapshot | None = None
        self.stopping = False
        self._lock = threading.Lock()
        self._at_once = False
        self._interrupt: Callable[[bool], None] | None = None

    def stop(self, *, at_once: bool = False) -> None:
        """Stop the run as SIGTERM does: requests in flight may finish (unless `at_once`), finished work is on
        disk.

        Any thread, also before the run has begun and between its parts.
        """
        with self._lock:
            self.stopping, self._at_once = True, self._at_once or at_once
            if self._interrupt is not None:
                self._interrupt(self._at_once)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Give this supervision to runs started inside."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextlib.contextmanager
    def listening(self, interrupt: Callable[[bool], None]) -> Iterator[None]:
        """Call `interrupt(at_once)` on the running loop for each `stop` within the context, also for an earlier
        one."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._interrupt = lambda at_once: _interrupt_soon(loop, interrupt, at_once)
            if self.stopping:
                _interrupt_soon(loop, interrupt, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None


def _interrupt_soon(loop: asyncio.AbstractEventLoop, interrupt: Callable[[bool], None], at_once: bool) -> None:
    loop.call_soon_threadsafe(lambda: interrupt(at_once))


def is_waiting(environ: Mapping[str, str]) -> bool:
    """Return whether no person sits before this run, so that it waits for an endpoint that comes up after it."""
    holder = _current.get()
    return (holder is not None and not holder.attended) or any(name in environ for name in SCHEDULER_VARIABLES)


def run_supervision() -> Supervision:
    """Return the supervision of the run; one that nobody holds where there is none."""
    return _current.get() or Supervision()
