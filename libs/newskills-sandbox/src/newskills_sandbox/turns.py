# SPDX-License-Identifier: Apache-2.0
"""Whose code runs now: as many cells as the processors can serve, so that a deadline measures the code; and none for
so long that a short one must wait for it to end.

Cells that have run for less go first, and take the turn of one that has run for longer: it is stopped, its clock with
it, and goes on later. The steps between "less" and "longer" grow, so that a cell is stopped a few times, not always.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from newskills_sandbox.waiters import Waiters

SLICE = 0.25
"""Seconds that a turn lasts at least."""
STEPS = (SLICE, 1.0, 4.0, 16.0)
"""Seconds of running after which a cell yields to those that have not run for so long."""
OLDEST_EVERY = 3
"""Every so manieth turn goes to the cell that waits longest, whatever it has had."""
TICK = 0.05


class Turn:
    """A cell that has begun to run. `whole`: it is never stopped, since it may keep time by itself."""

    def __init__(self, turns: Turns, *, whole: bool) -> None:
        self._turns = turns
        self.whole = whole
        self.waits_since = self.runs_since = time.monotonic()
        self.used = 0.0
        self.stop: Callable[[], None] | None = None
        self.go: Callable[[], None] | None = None

    def rest(self, idle: bool) -> None:
        """Note (True) when the cell only waits for something, and (False) when it runs again."""
        self._turns.rest(self, idle=idle)

    def let_stop(self, stop: Callable[[], None], go: Callable[[], None]) -> None:
        """Let the cell be stopped and go on by these, from now on."""
        self.runs_since = time.monotonic()
        self.stop, self.go = stop, go

    def keep_running(self) -> None:
        """Let the cell run on from now on: it is over, or nearly."""
        self.stop = self.go = None


class QueueHead(NamedTuple):
    """The first of a line. `turn` is None for a cell that has not begun; `since` by `time.monotonic`."""

    step: int
    since: float
    whole: bool
    turn: Turn | None = None


class Turns:
    """At most `usual` cells run at once; those that only wait do not count, unless `strict`.

    Nothing is stopped for another while `ample` says that memory is short: what has begun keeps what it holds.
    """

    def __init__(self, usual: int, *, strict: bool, ample: Callable[[], bool] = lambda: True) -> None:
        self._usual, self._strict, self._ample = usual, strict, ample
        self._running: list[Turn] = []
        self._new: dict[bool, Waiters[Turn]] = {whole: Waiters(self._end_turn) for whole in (False, True)}
        self._stopped: dict[int, deque[Turn]] = {step: deque() for step in range(len(STEPS) + 1)}
        self._given = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Cells that wait for their turn, the first or another."""
        return sum(map(len, self._new.values())) + sum(map(len, self._stopped.values()))

    @asynccontextmanager
    async def turn(self, *, whole: bool = False) -> AsyncIterator[Turn]:
        begun = self._new[whole].join()
        self._fill_places()
        turn = await begun
        try:
            yield turn
        finally:
            self._end_turn(turn)

    def rest(self, turn: Turn, *, idle: bool) -> None:
        if self._strict or turn in self._line_of(turn):
            return
        if idle and turn in self._running:
            self._leave_running(turn)
            self._fill_places()
        elif not idle and turn not in self._running:
            self._run_turn(turn)

    def _line_of(self, turn: Turn) -> deque[Turn]:
        return self._stopped[_step_of(turn.used)]

    def _end_turn(self, turn: Turn) -> None:
        turn.keep_running()
        for place in (self._line_of(turn), self._running):
            if turn in place:
                place.remove(turn)
        self._fill_places()

    def _run_turn(self, turn: Turn) -> None:
        turn.runs_since = time.monotonic()
        self._running.append(turn)

    def _leave_running(self, turn: Turn) -> None:
        self._running.remove(turn)
        turn.used += time.monotonic() - turn.runs_since

    def _fill_places(self) -> None:
        while (first := self._next_head(len(self._running))) is not None:
            self._give_turn(first)
        if self._timer is None and (any(self._new.values()) or any(self._stopped.values())):
            self._timer = asyncio.get_running_loop().call_later(TICK, self._on_tick)

    def _give_turn(self, first: QueueHead) -> None:
        self._given += 1
        if first.turn is None:
            turn = Turn(self, whole=first.whole)
            self._run_turn(turn)
            self._new[first.whole].hand(turn)
            return
        self._line_of(first.turn).remove(first.turn)
        self._run_turn(first.turn)
        if first.turn.go is not None:
            first.turn.go()

    def _next_head(self, running: int) -> QueueHead | None:
        """Tell whose turn it is while `running` others run; None where there is no room or nobody waits."""
        # One more cell may run beside programs, which nobody can stop.
        programs = sum(turn.whole for turn in self._running) >= self._usual and not self._strict
        first = [QueueHead(0, line.since, whole) for whole, line in self._new.items() if line]
        first += [
            QueueHead(step, line[0].waits_since, False, line[0]) for step, line in self._stopped.items() if line
        ]
        first = [line for line in first if running < self._usual + (programs and not line.whole)]
        if len(first) > 1 and (self._given % OLDEST_EVERY == OLDEST_EVERY - 1 or not self._ample()):
            return min(first, key=lambda waiter: waiter.since)
        return min(first, key=lambda waiter: (waiter.step, waiter.since), default=None)

    def _on_tick(self) -> None:
        self._timer = None
        while (longest := self._longest_turn()) is not None and self._ample():
            following = self._next_head(len(self._running) - 1)
            if following is None or longest.stop is None:
                break
            longest.stop()
            self._leave_running(longest)
            self._give_turn(following)
            longest.waits_since = time.monotonic()
            self._line_of(longest).append(longest)
            self._fill_places()
        self._fill_places()

    def _longest_turn(self) -> Turn | None:
        """Find, of those that can be stopped for one that has run for less: the one that has run longest."""
        now = time.monotonic()
        least = min((step for step, line in self._stopped.items() if line), default=len(STEPS))
        if any(self._new.values()):
            least = 0
        running = [
            (turn.used + now - turn.runs_since, turn)
            for turn in self._running
            if turn.stop is not None and now - turn.runs_since >= SLICE
        ]
        ran, turn = max(running, key=lambda pair: pair[0], default=(0.0, None))
        if _step_of(ran) > least:
            return turn
        return None


def _step_of(ran: float) -> int:
    return bisect_right(STEPS, ran)
