# SPDX-License-Identifier: Apache-2.0
"""How many requests a server of one's own is worth: more are tried at once, and kept where it then answers faster.

A server that has enough to do answers as many requests a second however many wait in its line; one that has not
answers more. Answers a second are compared over a whole turn of all requests in flight, after one turn in which those
that began before have ended.
"""

from __future__ import annotations

import time

from newskills.base.aio import Gate

LIMIT_FACTOR = 1.5
"""What the limit is multiplied with to try."""
MIN_RATE_GAIN = 1.1
"""Answers a second that a larger limit must bring, against the smaller one: chance alone brings a few percent."""
ANSWERS_PER_REQUEST = 2
"""Answers for each request in flight before their rate is believed."""
RATES_PASSED_OVER = 16
"""Rates that are passed over after a try in vain."""
MIN_IN_FLIGHT_SHARE = 0.9
"""Share of the limit that must be in flight: else there is too little to ask."""


class Climb:
    """Raises the limit of `gate`, up to `most`."""

    def __init__(self, gate: Gate, most: int) -> None:
        self._gate, self._most = gate, most
        self._before: tuple[float, float] | None = None
        self._rest = 0
        self._settling = self._full = True
        self._since, self._answers = time.monotonic(), 0

    def begin(self) -> None:
        """Begin to count anew: what was counted so far says nothing about the limit as it is now."""
        self._settling = True
        self._count()

    def note_answer(self) -> None:
        gate = self._gate
        self._answers += 1
        self._full = self._full and gate.active >= MIN_IN_FLIGHT_SHARE * gate.limit
        if self._answers < ANSWERS_PER_REQUEST * gate.limit:
            return
        now = time.monotonic()
        rate, full = self._answers / max(now - self._since, 1e-9), self._full
        settling, self._settling = self._settling, False
        self._count()
        if full and not settling:
            self._judge(rate)

    def _count(self) -> None:
        self._since, self._answers, self._full = time.monotonic(), 0, True

    def _judge(self, rate: float) -> None:
        gate = self._gate
        if self._before is not None:
            limit, slower = self._before
            self._before = None
            if rate < MIN_RATE_GAIN * slower:
                gate.limit, self._rest = limit, RATES_PASSED_OVER
                self.begin()
                return
        if self._rest:
            self._rest -= 1
        elif gate.limit < self._most:
            self._before = gate.limit, rate
            gate.limit = min(float(self._most), LIMIT_FACTOR * gate.limit)
            self.begin()
