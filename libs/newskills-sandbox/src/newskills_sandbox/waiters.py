# SPDX-License-Identifier: Apache-2.0
"""A line of those who wait for something on an event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Waiters(Generic[T]):
    """Who waits for a `T`, first come first served.

    What was handed to one that was cancelled before it could take it goes to `give_back`.
    """

    def __init__(self, give_back: Callable[[T], None]) -> None:
        self._give_back = give_back
        self._line: deque[tuple[float, asyncio.Future[T]]] = deque()

    def __bool__(self) -> bool:
        line = self._line
        while line and line[0][1].done():  # those that were cancelled
            line.popleft()
        return bool(line)

    def __len__(self) -> int:
        return sum(not turn.done() for _, turn in self._line)

    @property
    def since(self) -> float:
        """When the first of them came, by `time.monotonic`. Raises LookupError where nobody waits."""
        if not self:
            raise LookupError("nobody waits")
        return self._line[0][0]

    def join(self) -> Coroutine[Any, Any, T]:
        """Take the last place at once, and return what is to be awaited for the value that is handed over."""
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._line.append((time.monotonic(), turn))
        return self._await_turn(turn)

    def hand(self, value: T) -> bool:
        """Give `value` to the first in line; return False where nobody waits."""
        line = self._line
        while line:
            _, turn = line.popleft()
            if not turn.done():
                turn.set_result(value)
                return True
        return False

    async def _await_turn(self, turn: asyncio.Future[T]) -> T:
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(turn.result())
            raise
