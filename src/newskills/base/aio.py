# SPDX-License-Identifier: Apache-2.0
"""Asynchronous ground: an event loop to run in, a gate with a moving limit and rate, back-off, a boundary."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from newskills.base.errors import boundary
from newskills.base.records import Failure
from newskills_sandbox.waiters import Waiters

if TYPE_CHECKING:
    from newskills.base.environment import HealthCheck

T = TypeVar("T")

BURST_SECONDS = 0.02
"""Seconds of a rate that a gate may let in together: timers are no finer."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of uvloop where it is installed, else a standard one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main()` to its end, also where the caller's thread already has a loop (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        busy = False
    else:
        busy = True
    if not busy:
        return _run_in_new_loop(main)
    with ThreadPoolExecutor(1, "newskills-loop") as thread:
        return thread.submit(_run_in_new_loop, main).result()


def _run_in_new_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main())


async def await_guarded(work: Awaitable[T]) -> T | Failure:
    """Await `work`; an `Exception` becomes a `Failure` (cancellation and exit pass through)."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - the boundary, for what is awaited
        return boundary(error)


def backoff_seconds(attempt: int, *, base: float = 0.5, cap: float = 60.0) -> float:
    """Return the seconds to wait before try `attempt` (1 = first retry): doubles up to `cap`, with jitter of a
    half.

    Jitter keeps many clients from returning together (Brooker, "Exponential Backoff And Jitter", 2015).
    """
    return min(cap, base * 2.0 ** min(attempt - 1, 32)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class Gate:
    """Lets at most `limit` holders in at once, and at most `rate` a second (None = any), first come first served.

    Both may move while work runs.
    """

    def __init__(self, limit: float) -> None:
        self.active = 0
        self._limit = limit
        self._rate: float | None = None
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._shut = False
        self._waiters: Waiters[None] = Waiters(lambda _: self.release())

    @property
    def limit(self) -> float:
        return self._limit

    @limit.setter
    def limit(self, value: float) -> None:
        self._limit = value
        self._admit()

    @property
    def rate(self) -> float | None:
        return self._rate

    @rate.setter
    def rate(self, value: float | None) -> None:
        self._rate = value
        if value is not None:
            self._next = min(self._next, time.monotonic() + 1 / value)
        self._disarm()
        self._admit()

    def shut(self) -> None:
        """Shut the gate until `open`; holders are not disturbed."""
        self._shut = True
        self._disarm()

    def open(self) -> None:
        self._shut = False
        self._admit()

    def try_enter(self) -> bool:
        """Enter where nobody has to wait; return False where `acquire` is to be awaited."""
        if self._waiters or not self._room() or self._early() > 0:
            return False
        self._enter()
        return True

    async def acquire(self) -> None:
        if self.try_enter():
            return
        turn = self._waiters.join()
        self._admit()
        await turn

    def release(self) -> None:
        self.active -= 1
        self._admit()

    def _room(self) -> bool:
        return not self._shut and self.active + 1 <= self._limit

    def _early(self) -> float:
        """Return the seconds until the rate lets somebody in (generic cell rate algorithm, with `BURST_SECONDS` of
        tolerance)."""
        if self._rate is None:
            return 0.0
        return self._next - BURST_SECONDS - time.monotonic()

    def _enter(self) -> None:
        self.active += 1
        if self._rate is not None:
            self._next = max(time.monotonic(), self._next) + 1 / self._rate

    def _admit(self) -> None:
        while self._waiters and self._room():
            if (early := self._early()) > 0:
                if self._timer is None:
                    self._timer = asyncio.get_running_loop().call_later(early, self._tick)
                return
            self._enter()
            self._waiters.hand(None)

    def _tick(self) -> None:
        self._timer = None
        self._admit()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _HasExitCode(Protocol):
    @property
    def exit_code(self) -> int | None: ...


Outcome = TypeVar("Outcome", bound=_HasExitCode)


async def wait_until_healthy(probe: Callable[[float], Awaitable[Outcome]], check: HealthCheck) -> Outcome | None:
    """Run `probe` (given its time limit) until it passes and return None; return its last outcome after so many
    failures, of which those in the start period do not count."""
    started, failures = time.monotonic(), 0
    while True:
        is_starting = time.monotonic() - started < check.start_period_sec
        outcome = await probe(check.timeout_sec)
        if outcome.exit_code == 0:
            return None
        failures += not is_starting
        if failures >= check.retries:
            return outcome
        await asyncio.sleep(check.start_interval_sec if is_starting else check.interval_sec)
