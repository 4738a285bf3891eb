# SPDX-License-Identifier: Apache-2.0
"""Who may run when: in order, never more than asked for, and sleepers hold nobody up."""

from __future__ import annotations

import asyncio
import time

import pytest

from newskills.sandbox.turns import Turns


async def take(turns: Turns, log: list[int], number: int, seconds: float, *, busy: bool = False) -> None:
    async with turns:
        log.append(number)
        if busy:
            await asyncio.to_thread(spin, seconds)
        else:
            await asyncio.sleep(seconds)


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_turns_are_given_in_order_and_one_at_a_time_where_asked_for() -> None:
    async def work() -> list[int]:
        turns, log = Turns(1, strict=True), list[int]()
        tasks = [asyncio.create_task(take(turns, log, number, 0.05)) for number in range(4)]
        await asyncio.sleep(0.02)
        assert (log, turns.waiting) == ([0], 3)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert turns.waiting == 0
        return log

    assert asyncio.run(work()) == [0, 2, 3]


def test_sleepers_hold_nobody_up() -> None:
    async def work() -> int:
        turns, log = Turns(64, strict=False), list[int]()
        tasks = [asyncio.create_task(take(turns, log, number, 30)) for number in range(70)]
        async with asyncio.timeout(20):
            while len(log) < 70:
                await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return turns.waiting

    assert asyncio.run(work()) == 0


def test_a_turn_that_was_given_to_someone_who_left_goes_on_to_the_next() -> None:
    async def work() -> list[int]:
        turns, log = Turns(1, strict=True), list[int]()
        first = asyncio.create_task(take(turns, log, 0, 0.05))
        waiting = asyncio.create_task(take(turns, log, 1, 0))
        last = asyncio.create_task(take(turns, log, 2, 0))
        await first
        waiting.cancel()  # in the same turn of the loop in which it was let in
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(5):
            await last
        return log

    assert asyncio.run(work())[-1] == 2
