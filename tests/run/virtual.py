# SPDX-License-Identifier: Apache-2.0
"""Virtual time: what takes hours by the clock is over as soon as it is computed, and the same on any machine."""

from __future__ import annotations

import asyncio
import random
import selectors
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from newskills.base.errors import HttpError
from newskills.base.records import Message, Reply, Request, Usage

T = TypeVar("T")


class _Skipping(selectors.DefaultSelector):
    """Instead of waiting, it moves the clock."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            self._clock[0] += timeout
        return super().select(0)


def simulated(monkeypatch: pytest.MonkeyPatch, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What `main()` returns, on a loop whose time passes without waiting. Nothing inside may touch the network."""
    clock = [1000.0]
    random.seed(7)
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: clock[0])
        loop = asyncio.SelectorEventLoop(_Skipping(clock))
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main())


class SimulatedModel:
    """Answers after `latency` seconds; `meet` may raise what a request meets instead, or take its time."""

    name = "simulated"

    def __init__(self, latency: float, meet: Callable[[Request], Awaitable[HttpError | None]]) -> None:
        self.asked = self.refused = self.at_work = 0
        self._latency, self._meet = latency, meet

    async def complete(self, request: Request) -> Reply:
        self.asked += 1
        error = await self._meet(request)
        if error is not None:
            self.refused += 1
            await asyncio.sleep(0.001)
            raise error
        self.at_work += 1
        try:
            await asyncio.sleep(self._latency)
        finally:
            self.at_work -= 1
        return Reply(text="ok", usage=Usage(output_tokens=100), finish_reason="stop")

    async def close(self) -> None:
        """Nothing is held."""


def at_random(share: float, make: Callable[[], HttpError]) -> Callable[[Request], Awaitable[HttpError | None]]:
    """That share of requests fails, whatever the load."""
    draw = random.Random(7)

    async def meet(request: Request) -> HttpError | None:
        return make() if draw.random() < share else None

    return meet


def above(rate: float, make: Callable[[], HttpError]) -> Callable[[Request], Awaitable[HttpError | None]]:
    """A token bucket that holds a tenth of a second's worth."""
    tokens, filled = rate / 10 + 1, time.monotonic()

    async def meet(request: Request) -> HttpError | None:
        nonlocal tokens, filled
        now = time.monotonic()
        tokens, filled = min(rate / 10 + 1, tokens + (now - filled) * rate), now
        if tokens < 1:
            return make()
        tokens -= 1
        return None

    return meet


def ask(text: str, **inference: Any) -> Request:
    request = Request(messages=[Message(role="user", content=text)])
    request.inference = type(request.inference)(**inference)
    return request
