# SPDX-License-Identifier: Apache-2.0
"""How many requests are in flight at servers that never refuse any, in virtual time."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from tests.run.virtual import ask, simulated

from newskills.base.errors import RateLimitError
from newskills.base.records import Reply, Request
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.endpoint import Endpoint


class Batching:
    """Answers in `seconds`, as long as no more than `slots` are in flight; the others wait in line."""

    def __init__(self, slots: int, seconds: float, refusals: float = 0.0) -> None:
        self.name, self._seconds, self._refusals = "m", seconds, refusals
        self._slots = asyncio.Semaphore(slots)
        self.answered = 0
        self._chance = random.Random(4)

    async def complete(self, request: Request) -> Reply:
        if self._chance.random() < self._refusals:
            raise RateLimitError("slow down")
        async with self._slots:
            await asyncio.sleep(self._seconds * self._chance.uniform(0.3, 1.7))
        self.answered += 1
        return Reply(text="")

    async def close(self) -> None:
        pass


def last_limit(
    monkeypatch: pytest.MonkeyPatch, slots: int, *, rows: int = 12_000, refusals: float = 0.0
) -> tuple[int, float]:
    """The limit in the end, and answers a second."""

    async def main() -> tuple[int, float]:
        model = Batching(slots, 10.0, refusals)
        policy = RetryPolicy(concurrency=64, most=512)
        endpoint = Endpoint(model, policy, say=lambda _: None, on_fatal=lambda _: None)
        left = iter(range(rows))
        began, limit = time.monotonic(), 0

        async def worker() -> None:
            nonlocal limit
            for row in left:
                await endpoint.complete(ask(f"row {row}"))
                if row < rows - 600:
                    limit = endpoint.concurrency

        await asyncio.gather(*(worker() for _ in range(512)))
        rate = model.answered / (time.monotonic() - began)
        await endpoint.close()
        return limit, rate

    return simulated(monkeypatch, main)


def test_a_server_that_can_do_more_gets_more(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, rate = last_limit(monkeypatch, 300)
    assert 280 <= limit <= 512
    assert rate > 0.75 * 300 / 10


def test_a_server_that_is_full_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, _ = last_limit(monkeypatch, 64, rows=4000)
    assert limit <= 96


def test_a_server_that_refuses_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, _ = last_limit(monkeypatch, 300, rows=3000, refusals=0.3)
    assert limit <= 64
