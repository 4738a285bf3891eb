# SPDX-License-Identifier: Apache-2.0
"""Who may run when: in order, never more than asked for, and sleepers hold nobody up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newskills_sandbox.turns import SLICE, Turns


async def take(turns: Turns, log: list[int], number: int, seconds: float, *, idle: bool = False) -> None:
    async with turns.turn() as turn:
        log.append(number)
        turn.rest(idle)
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
        async with turns.turn() as one, turns.turn() as other:
            waiting = [asyncio.create_task(take(turns, log, number, 30, idle=number < 5)) for number in range(8)]
            await asyncio.sleep(0.05)
            assert log == []
            one.rest(True)  # 0 to 4 come in, and rest at once; then 5, which runs
            await asyncio.sleep(0.05)
            assert log == [0, 1, 2, 3, 4, 5]
            one.rest(False)
            other.rest(True)
            other.rest(True)
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


class Runner:
    """A cell that runs until it is told to end, and remembers when it was stopped and let go."""

    def __init__(self, turns: Turns, name: str, log: list[str], *, whole: bool = False) -> None:
        self._turns, self._name, self._log, self._whole = turns, name, log, whole
        self.over = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self._turns.turn(whole=self._whole) as turn:
            self._say("begins")
            if not self._whole:
                turn.let_stop(lambda: self._say("stops"), lambda: self._say("goes on"))
            await self.over.wait()
            turn.keep_running()
            self._say("ends")

    def _say(self, what: str) -> None:
        self._log.append(f"{self._name} {what}")


async def until(log: list[str], entry: str) -> None:
    async with asyncio.timeout(120):
        while entry not in log:
            await asyncio.sleep(0.01)


def test_one_that_has_not_run_takes_the_turn_of_one_that_has() -> None:
    async def work() -> list[str]:
        turns, log = Turns(1, strict=True), list[str]()
        old = Runner(turns, "old", log)
        await until(log, "old begins")
        new = Runner(turns, "new", log)
        await until(log, "new begins")
        new.over.set()
        await until(log, "old goes on")
        old.over.set()
        await asyncio.gather(old.task, new.task)
        assert turns.waiting == 0
        return log

    assert asyncio.run(work()) == [
        "old begins",
        "old stops",
        "new begins",
        "new ends",
        "old goes on",
        "old ends",
    ]


def test_programs_are_never_stopped_and_leave_one_cell_beside_them() -> None:
    async def work() -> list[str]:
        turns, log = Turns(2, strict=False), list[str]()
        programs = [Runner(turns, f"program {number}", log, whole=True) for number in range(3)]
        cell = Runner(turns, "cell", log)
        await until(log, "cell begins")
        other = Runner(turns, "other", log)
        await until(log, "other begins")
        assert "program 2 begins" not in log
        for runner in (*programs, cell, other):
            runner.over.set()
        await asyncio.gather(*(runner.task for runner in (*programs, cell, other)))
        return log

    log = asyncio.run(work())
    assert log[:5] == ["program 0 begins", "program 1 begins", "cell begins", "cell stops", "other begins"]


def test_nothing_is_stopped_while_memory_is_short() -> None:
    async def work() -> list[str]:
        short = [True]
        turns, log = Turns(1, strict=True, ample=lambda: not short[0]), list[str]()
        old = Runner(turns, "old", log)
        new = Runner(turns, "new", log)
        await asyncio.sleep(4 * SLICE)
        assert log == ["old begins"]
        short[0] = False
        await until(log, "new begins")
        for runner in (old, new):
            runner.over.set()
        await asyncio.gather(old.task, new.task)
        return log

    assert asyncio.run(work())[:3] == ["old begins", "old stops", "new begins"]


def test_those_that_were_stopped_get_their_turn_though_new_ones_keep_coming() -> None:
    async def work() -> None:
        turns, log = Turns(1, strict=True), list[str]()
        old = Runner(turns, "old", log)
        await until(log, "old begins")
        runners: list[Any] = []
        async with asyncio.timeout(60):
            while "old goes on" not in log:
                runners.append(Runner(turns, f"new {len(runners)}", log))
                await asyncio.sleep(0.1)
        for runner in (old, *runners):
            runner.over.set()
        await asyncio.gather(old.task, *(runner.task for runner in runners))

    asyncio.run(work())
