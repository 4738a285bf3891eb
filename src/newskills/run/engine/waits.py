# SPDX-License-Identifier: Apache-2.0
"""How long requests take, and how long one may: a request that hangs is told by the length of the others.

The timeout of a request is the user's, or what the others tell: twice what the longest answer would take at the
slowest speed seen, where the number of new tokens is bounded; else ten times the longest reply; more where few replies
have been seen. A request that met it may take twice as long in its next try, so that a long answer among short ones is
not lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from itertools import takewhile

from msgspec import Struct

from newskills.base.errors import RequestTimeoutError
from newskills.base.records import Reply, Request
from newskills.run.engine.progress import SlowRequests, format_duration

ENOUGH_REPLIES = 20
"""Replies that tell how long others take; with a tenth of them, a request may take ten times as long."""
MIN_COUNTED_TOKENS = 32
"""Tokens below which a reply says nothing about speed."""
LONGER, SAFE = 10.0, 2.0


class RequestInFlight(Struct, eq=False):
    """A request under way. `timeouts`: how many of its tries ended by timeout; `task` waits for this one, and had been
    cancelled `cancelled` times when it began to."""

    request: Request
    started: float
    timeouts: int
    task: asyncio.Task[object]
    cancelled: int
    expired: bool = False

    def expire(self) -> None:
        """Cancel the task that waits for this request."""
        if not self.expired:
            self.expired = True
            self.task.cancel()

    def take_back(self) -> bool:
        """Return whether nobody else cancelled the task, after undoing what `expire` did to it. As
        `asyncio.timeout` does, which costs more than all else that is done here for a request."""
        return self.expired and self.task.uncancel() <= self.cancelled


class Waits:
    """Requests in flight, oldest first. `shortest`: seconds that any may take; `tries`: of one request, at most."""

    def __init__(self, *, shortest: float, tries: int) -> None:
        self._shortest, self._tries = shortest, tries
        self._flights: dict[int, RequestInFlight] = {}
        self._numbers = 0
        self._seen = 0
        self._longest = self._slowest_token = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, request: Request, timeouts: int, work: Awaitable[Reply]) -> Reply:
        """Return what `work` returns. Raises RequestTimeoutError after `timeout` seconds."""
        self._numbers += 1
        number, started, task = self._numbers, time.monotonic(), asyncio.current_task()
        assert task is not None
        flight = RequestInFlight(request, started, timeouts, task, task.cancelling())
        self._flights[number] = flight
        try:
            if self._timer is None:
                self._watch()
            reply = await work
            if flight.expired:
                flight.take_back()
        except BaseException as error:
            if not flight.take_back() or not isinstance(error, asyncio.CancelledError):
                raise
            raise RequestTimeoutError(
                f"No reply came within {format_duration(time.monotonic() - started)}, while the longest of"
                f" {self._seen:,} others took {format_duration(self._longest)}."
            ) from error
        finally:
            del self._flights[number]
        self._count(reply, time.monotonic() - started)
        return reply

    def timeout(self, request: Request, timeouts: int) -> float:
        """Return the seconds that the next try of a request may take."""
        own_timeout = request.inference.timeout
        if not self._seen:
            return own_timeout
        tokens = request.inference.tokens_to_generate
        if tokens and self._slowest_token:
            seconds = SAFE * max(self._longest, tokens * self._slowest_token)
        else:
            seconds = LONGER * self._longest
        return min(own_timeout, max(self._shortest, seconds) * self._doubt * 2.0**timeouts)

    def slow(self) -> SlowRequests | None:
        """Describe requests that take much longer than others did; None where there are none."""
        if not self._seen:
            return None
        now, usual = time.monotonic(), max(self._shortest / LONGER, SAFE * self._longest) * self._doubt
        late = list(takewhile(lambda flight: now - flight.started > usual, self._flights.values()))
        if not late:
            return None
        oldest = late[0]
        waited = now - oldest.started
        left = self.timeout(oldest.request, oldest.timeouts) - waited
        further = range(oldest.timeouts + 1, self._tries)
        return SlowRequests(
            len(late), waited, max(0.0, left) + sum(self.timeout(oldest.request, n) for n in further)
        )

    @property
    def _doubt(self) -> float:
        return max(1.0, ENOUGH_REPLIES / self._seen)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _count(self, reply: Reply, seconds: float) -> None:
        self._seen += 1
        self._longest = max(self._longest, seconds)
        if (tokens := reply.usage.output_tokens or 0) >= MIN_COUNTED_TOKENS:
            self._slowest_token = max(self._slowest_token, seconds / tokens)

    def _watch(self) -> None:
        """End the requests that take too long; look again as long as something is in flight."""
        now = time.monotonic()
        for flight in self._flights.values():
            if now - flight.started < self._shortest:
                break
            if now - flight.started > self.timeout(flight.request, flight.timeouts):
                flight.expire()
        every = min(1.0, self._shortest / 10)
        if self._flights:
            self._timer = asyncio.get_running_loop().call_later(every, self._watch)
        else:
            self._timer = None
