# SPDX-License-Identifier: Apache-2.0
"""What environments of other packages have in common: rewards that are numbers, and what many samples use at once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, TypeVar

from newskills.base.errors import EnvironmentFailedError

T = TypeVar("T")


def reward_of(value: object, environment: str) -> float:
    """Return a reward as a number; None is 0. Raises EnvironmentFailedError for what is no finite number."""
    if value is None:
        return 0.0
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise EnvironmentFailedError(f"{environment} gave the reward {value!r}, which is not a number.")
    return float(value)


class SharedContext(Generic[T]):
    """Opened for the first sample, closed after the last, in a task of its own: some contexts must end in the task
    that they began in, whichever sample is the last.

    `keep`: closed with the loop instead, for what takes long to open.
    """

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[T]], *, keep: bool = False) -> None:
        self._open, self._keep = opened, keep
        self._users = 0
        self._value: asyncio.Future[T] | None = None
        self._holder: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[T]:
        """Yield what is shared, and open it for the first user. Raises what opening it raises, to all that wait for
        it."""
        self._users += 1
        try:
            if self._value is None:
                self._idle = asyncio.Event()
                self._value = asyncio.get_running_loop().create_future()
                self._holder = asyncio.create_task(self._hold(self._value, self._idle))
            yield await asyncio.shield(self._value)
        finally:
            self._users -= 1
            if not self._users and not (self._keep and self._holder is not None and not self._holder.done()):
                self._idle.set()
                self._value, holder = None, self._holder
                if holder is not None:
                    await asyncio.shield(holder)

    async def _hold(self, value: asyncio.Future[T], idle: asyncio.Event) -> None:
        try:
            async with self._open() as held:
                value.set_result(held)
                await idle.wait()
        except Exception as error:
            if not value.done():
                value.set_exception(error)
            raise
