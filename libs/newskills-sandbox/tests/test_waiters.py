# SPDX-License-Identifier: Apache-2.0
"""The line of those who wait."""

from __future__ import annotations

import asyncio
import time

import pytest

from newskills_sandbox.waiters import Waiters


def test_waiters_are_served_in_order_and_what_a_cancelled_one_got_is_given_back() -> None:
    async def work() -> None:
        back = list[int]()
        waiters: Waiters[int] = Waiters(back.append)
        assert not waiters
        assert not waiters.hand(0)
        tasks = [asyncio.ensure_future(waiters.join()) for _ in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert (len(waiters), waiters.hand(1), waiters.hand(2)) == (3, True, True)
        tasks[2].cancel()  # in the same turn of the loop in which it got its value
        assert await tasks[1] == 1
        with pytest.raises(asyncio.CancelledError):
            await tasks[2]
        assert back == [2]
        assert waiters.since <= time.monotonic()
        assert waiters.hand(3)
        assert await tasks[3] == 3

    asyncio.run(work())
