# SPDX-License-Identifier: Apache-2.0
"""Who may run when: in order, never more than asked for, and sleepers hold nobody up."""

from __future__ import annotations

import asyncio

import pytest

from newskills.sandbox.turns import Turns


async def take(turns: Turns, log: list[int], number: int, seconds: float, *, idle: bool = False) -> None:
    async with turns.turn() as rest:
        log.append(number)
        rest(idle)
        await asyncio.sleep(seconds)


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


def test_sleepers_hold_nobody_up_and_count_again_when_they_wake() -> None:
    async def work() -> list[int]:
        turns, log = Turns(2, strict=False), list[int]()
        async with turns.turn() as rest, turns.turn() as other:
            waiting = [asyncio.create_task(take(turns, log, number, 30, idle=number < 5)) for number in range(8)]
            await asyncio.sleep(0.05)
            assert log == []
            rest(True)  # 0 to 4 come in, and rest at once; then 5, which runs
            await asyncio.sleep(0.05)
            assert log == [0, 1, 2, 3, 4, 5]
            rest(False)
            other(True)
            other(True)
            await asyncio.sleep(0.05)
            assert log == [0, 1, 2, 3, 4, 5]
        await asyncio.sleep(0.05)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert turns.waiting == 0
        return log

    assert asyncio.run(work()) == [0, 1, 2, 3, 4, 5, 6]


def test_strict_turns_count_sleepers() -> None:
    async def work() -> list[int]:
        turns, log = Turns(1, strict=True), list[int]()
        tasks = [asyncio.create_task(take(turns, log, number, 0.1, idle=True)) for number in range(3)]
        await asyncio.sleep(0.05)
        assert log == [0]
        await asyncio.gather(*tasks)
        return log

    assert asyncio.run(work()) == [0, 1, 2]


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
        async with asyncio.timeout(60):
            await last
        return log

    assert asyncio.run(work())[-1] == 2
