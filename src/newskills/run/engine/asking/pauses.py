# SPDX-License-Identifier: Apache-2.0
"""Rate limits that concern one request, or a whole endpoint: which of both, and how long that is borne.

A server may refuse one request for ever (it is larger than the account's tokens a minute), with the same 429 that it
gives to everybody at a busy moment. What happens to the other requests tells them apart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct

from newskills.base.aio import Gate
from newskills.base.errors import HttpError
from newskills.run.engine.progress import clock_time, format_duration

MAX_COINCIDENCE = 1e-9
"""A request is singled out where others would have been refused as often only with that probability."""
SUSPICIOUS_COINCIDENCE = 0.05
"""From here on, refusals of a request say nothing about the load."""
LONGEST_PAUSE_SECONDS = 3600.0
"""A server's word is taken for an hour at most."""
FIRST_CHECK_SECONDS = 30.0
"""A pause that lasts longer is checked by a probe, later ones after twice the time each."""
TOLD_FROM_SECONDS = 5.0


class RefusalHistory(Struct):
    """What one request met: answers and refusals of others before its last try, and how far all was coincidence."""

    answers_before: int = 0
    refusals_before: int = 0
    coincidence: float = 1.0

    @property
    def suspicious(self) -> bool:
        return self.coincidence < SUSPICIOUS_COINCIDENCE


class RefusalCounts:
    """Answers and rate limits of an endpoint, counted over all requests."""

    def __init__(self) -> None:
        self._answers = self._refusals = 0

    def note_answer(self) -> None:
        self._answers += 1

    def note_refusal(self, history: RefusalHistory) -> None:
        if not history.suspicious:
            self._refusals += 1

    def begin(self) -> RefusalHistory:
        return RefusalHistory(self._answers, self._refusals)

    def others_answered(self, history: RefusalHistory) -> bool:
        return self._answers > history.answers_before

    def update_history(self, history: RefusalHistory) -> None:
        """Update `history` after a refusal: multiply by the share of others that were refused since its last one.

        The share is estimated with half a count of either outcome (Jeffreys' prior); without others it says nothing.
        """
        answers = self._answers - history.answers_before
        refusals = self._refusals - history.refusals_before
        if not history.suspicious:
            refusals = max(0, refusals - 1)  # its own
        if answers:
            history.coincidence *= (refusals + 0.5) / (answers + refusals + 1)
        history.answers_before, history.refusals_before = self._answers, self._refusals


class ServerPause:
    """The time for which an endpoint asks to be left alone (Retry-After).

    All requests wait. A long pause is checked by probes: where one is answered, the pause ends, and from then on
    such a word is taken for the refused request alone. `patience` seconds without an answer end the run.

    probe    None if the endpoint answers, else what it says
    resume   called when requests may be sent again
    give_up  called with what the endpoint says when patience ends
    """

    def __init__(
        self,
        gate: Gate,
        patience: float,
        probe: Callable[[], Awaitable[HttpError | None]],
        resume: Callable[[], None],
        give_up: Callable[[HttpError], None],
        say: Callable[[str], None],
        name: str,
    ) -> None:
        self._gate, self._patience = gate, patience
        self._probe, self._resume, self._give_up, self._say, self._name = probe, resume, give_up, say, name
        self._until = 0.0
        self._trusted = True
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    @property
    def seconds_left(self) -> float:
        """Seconds until requests are sent again; 0 where none are held back."""
        return max(0.0, self._until - time.monotonic())

    def begin(self, seconds: float, error: HttpError) -> None:
        """Hold all requests for `seconds`, unless this endpoint's word has turned out to concern single requests."""
        until = time.monotonic() + min(seconds, LONGEST_PAUSE_SECONDS)
        if not self._trusted or until <= self._until:
            return
        self._until = until
        self._gate.shut()
        if self._task is None:
            self._ended.clear()
            self._task = asyncio.create_task(self._sit_out(error))

    async def rest(self, seconds: float, longest: float) -> None:
        """Wait for the time that a refused request was told, or for the end of the pause if that is sooner.

        Where the endpoint answers others meanwhile, `longest` seconds are enough.
        """
        if self._task is None:
            await asyncio.sleep(min(seconds, longest))
            return
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _sit_out(self, error: HttpError) -> None:
        began = time.monotonic()
        if self.seconds_left >= TOLD_FROM_SECONDS:
            pause, end = format_duration(self.seconds_left), clock_time(self.seconds_left)
            self._say(
                f"{self._name} asks for a pause of {pause}, until {end} ({error}) The run waits, and then continues by "
                "itself."
            )
        check = FIRST_CHECK_SECONDS
        try:
            while (left := self.seconds_left) > 0:
                waited = time.monotonic() - began
                await asyncio.sleep(max(0.0, min(left, check - waited, self._patience - waited)))
                waited = time.monotonic() - began
                if self.seconds_left <= 0:
                    break
                met = await self._probe()
                if met is None:
                    self._trusted, self._until = False, 0.0
                    self._say(f"{self._name} answers other requests before that; the run continues.")
                elif waited >= self._patience:
                    self._give_up(met)
                    return
                if waited >= check:
                    check *= 2
        finally:
            self._task = None
            self._ended.set()
            self._resume()
