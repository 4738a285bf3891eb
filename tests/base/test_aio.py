# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio

import pytest

from newskills.base.aio import Gate, await_guarded, backoff_seconds, run
from newskills.base.errors import RateLimitError
from newskills.base.records import Failure


def test_run_works_inside_a_running_loop() -> None:
    async def inner() -> int:
        await asyncio.sleep(0)
        return 7

    async def outer() -> int:
        return run(inner)

    assert run(inner) == 7
    assert asyncio.run(outer()) == 7


def test_guarded_attributes_exceptions_and_passes_cancellation() -> None:
    async def limited() -> int:
        raise RateLimitError("slow down")

    async def forever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        failure = await await_guarded(limited())
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.cause, failure.status) == ("RateLimitError", "provider", 429)
        task = asyncio.create_task(await_guarded(forever()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main)


def test_backoff_grows_to_its_cap() -> None:
    for attempt in range(1, 80):
        assert (
            0.5 * min(60, 0.5 * 2 ** (attempt - 1))
            <= backoff_seconds(attempt)
            <= min(60, 0.5 * 2 ** (attempt - 1))
        )


async def worker(gate: Gate, seen: list[int], turns: int) -> None:
    for _ in range(turns):
        await gate.acquire()
        seen.append(gate.active)
        await asyncio.sleep(0)
        gate.release()


def test_the_gate_keeps_its_limit_when_it_moves() -> None:
    async def main() -> None:
        gate, seen = Gate(5), list[int]()
        workers = [asyncio.create_task(worker(gate, seen, 20)) for _ in range(12)]
        await asyncio.sleep(0)
        assert max(seen) == 5
        gate.limit = 2.9
        for _ in range(10):
            await asyncio.sleep(0)
        seen.clear()
        await asyncio.gather(*workers)
        assert max(seen) <= 2
        assert gate.active == 0

    run(main)


def test_a_shut_gate_lets_nobody_in() -> None:
    async def main() -> None:
        gate = Gate(4)
        gate.shut()
        waiting = [asyncio.create_task(gate.acquire()) for _ in range(3)]
        await asyncio.sleep(0)
        assert gate.active == 0
        gate.open()
        await asyncio.gather(*waiting)
        assert gate.active == 3

    run(main)


def test_those_who_give_up_waiting_take_no_place() -> None:
    async def main() -> None:
        gate = Gate(1)
        await gate.acquire()
        first, second = asyncio.create_task(gate.acquire()), asyncio.create_task(gate.acquire())
        await asyncio.sleep(0)
        gate.release()
        first.cancel()  # its turn has come, but it has not noticed yet
        await asyncio.wait([first])
        await asyncio.wait_for(second, 60)
        assert gate.active == 1

    run(main)
