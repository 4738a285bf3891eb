# SPDX-License-Identifier: Apache-2.0
"""Whose code runs now: as many cells as the processors can serve, so that a deadline measures the code."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Turns:
    """At most `usual` cells run at once; those that only wait do not count, unless `strict`. Turns go in order."""

    def __init__(self, usual: int, *, strict: bool) -> None:
        self._usual, self._strict = usual, strict
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return sum(not turn.done() for turn in self._waiting)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[bool], None]]:
        """Yields what is to be told (True) when the cell only waits, and (False) when it runs again."""
        await self._begin()
        resting = False

        def rest(idle: bool) -> None:
            nonlocal resting
            if idle != resting and not self._strict:
                resting = idle
                if idle:
                    self._leave()
                else:
                    self._active += 1

        try:
            yield rest
        finally:
            if not resting:
                self._leave()

    async def _begin(self) -> None:
        if self._active < self._usual and not self._waiting:
            self._active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        self._active -= 1
        while self._waiting and self._active < self._usual:
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)
