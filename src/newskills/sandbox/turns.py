# SPDX-License-Identifier: Apache-2.0
"""Whose code runs now: as many cells as the processors can serve, and more while those that run only wait."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from types import TracebackType

LOOK_EVERY = 0.02
_LOAD = Path("/proc/loadavg")


class Turns:
    """`async with`: at most `usual` cells at once while processors are busy, so that a deadline measures the code.

    Cells that sleep hold nobody up: others begin as long as fewer than `usual` threads of the machine want to run,
    unless `strict`. Turns are given in order.
    """

    def __init__(self, usual: int, *, strict: bool) -> None:
        self._usual, self._strict = usual, strict
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return sum(not turn.done() for turn in self._waiting)

    async def __aenter__(self) -> None:
        if self._active < self._usual and not self._waiting:
            self._active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._look_later()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._active -= 1
        if self._active < self._usual:
            self._begin_next()

    def _begin_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)
                return

    def _look_later(self) -> None:
        if self._timer is None and not self._strict:
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)

    def _look(self) -> None:
        self._timer = None
        for _ in range(self._usual - _runnable()):
            self._begin_next()
        if self._waiting:
            self._look_later()


def _runnable() -> int:
    """Threads of the machine that run or want to, this one left out (proc(5))."""
    return int(_LOAD.read_text().split()[3].partition("/")[0]) - 1
