# SPDX-License-Identifier: Apache-2.0
"""How fast an endpoint is asked: as fast as it takes, found by asking.

Refusals that come now and then (one in twenty) cost nothing but their own retry. Where they are many, the endpoint has
a limit: of requests at once, or of requests a second. Both are measured, as what was in flight and what was taken
while it refused the rest, and kept to; then a little more is tried, ever faster while nothing is refused. Where asking
less does not make refusals rarer, they have nothing to do with the load, and the old pace returns.
"""

from __future__ import annotations

import math
import time

from newskills.base.aio import Gate
from newskills.run.engine.climb import Climb

MANY_REFUSALS_SHARE = 0.15
"""Share of refused requests that tells of a limit, where none is known."""
MANY_REFUSALS_SHARE_AT_LIMIT = 0.1
FEW_REFUSALS_SHARE = 0.03
FLOOD_REFUSALS_SHARE = 0.5
"""A share at which a fraction of an epoch is enough to tell."""
ENOUGH, ENOUGH_AT_A_LIMIT = 40, 8
"""Requests that an epoch must see settled."""
SURE, SURE_AT_A_LIMIT = 8, 3
"""Refusals that it takes to call them many."""
CALM_EPOCH_ANSWERS = 64
"""Answers after which counts are judged while nothing is refused."""
LIMIT_GROWTH = 0.03
CALM_ANSWERS = 24
"""Answers with hardly a refusal after which growth doubles."""
LIMIT_SHRINK = 0.7
MIN_RATE_SHARE = 0.1
"""No epoch cuts the rate to less than this share."""
TOLERANT_EPOCHS = 60
"""Epochs for which a share of refusals is borne that asking less did not change."""


class Load:
    """Moves the limit and the rate of `gate`, whose limit stays while nothing is known.

    `epoch`: seconds after which counts are judged; ten of them pass between two requests, at most. `most`: what the
    limit may rise to while the endpoint gets faster and refuses nothing.
    """

    def __init__(self, gate: Gate, *, epoch: float, most: int = 0) -> None:
        self._gate, self._most = gate, gate.limit
        self._climb = Climb(gate, most) if most > gate.limit else None
        self._epoch, self._least = epoch, 0.1 / epoch
        self._known = 0.0
        self._growth, self._calm = LIMIT_GROWTH, 0
        self._bearable, self._bearable_for = MANY_REFUSALS_SHARE, 0
        self._cut_at = 0.0
        self._cut_for: tuple[float, float | None, float] | None = None
        self._since = math.inf
        self._starts = self._answered = self._refused = self._in_flight = 0

    @property
    def limited(self) -> bool:
        """Whether the endpoint is asked less often than it might be."""
        return self._gate.rate is not None

    def note_start(self) -> None:
        if self._since == math.inf:
            self._since = time.monotonic()
        self._starts += 1

    def note_answer(self, started: float) -> None:
        """Count the answer to a request and adapt the load; `started` is as by `time.monotonic()`."""
        if started >= self._cut_at:
            self._answered += 1
            self._in_flight = max(self._in_flight, self._gate.active)
        rate = self._gate.rate
        if rate is not None and rate < self._known / 2:
            self._gate.limit = min(self._most, self._gate.limit * 2)
            self._gate.rate = min(self._known / 2, rate * 2)
            self._begin(time.monotonic())
        if self._climb is not None:
            self._rise(self._climb)
        if self._refused or self._at_a_limit or self._answered % CALM_EPOCH_ANSWERS == 0:
            self._judge()

    def note_refusal(self, started: float) -> None:
        if started >= self._cut_at:
            self._refused += 1
        self._judge()

    def note_wait(self, started: float) -> None:
        """Lower the limit where the endpoint said how long to wait: fewer at once for a while, once for all that were
        in flight."""
        if started >= self._cut_at:
            self._cut_at = time.monotonic()
            self._gate.limit = max(1.0, self._gate.limit * LIMIT_SHRINK)

    def _rise(self, climb: Climb) -> None:
        if self._at_a_limit or self._refused:
            climb.begin()
        else:
            climb.note_answer()
            self._most = self._gate.limit

    @property
    def _at_a_limit(self) -> bool:
        return self._gate.rate is not None or self._gate.limit < self._most

    def _begin(self, now: float) -> None:
        self._since = now
        self._starts = self._answered = self._refused = self._in_flight = 0

    def _judge(self) -> None:
        now = time.monotonic()
        elapsed, settled = now - self._since, self._answered + self._refused
        if not settled:
            return
        at_a_limit = self._at_a_limit
        share = self._refused / max(settled, self._starts)
        sure, enough = (SURE_AT_A_LIMIT, ENOUGH_AT_A_LIMIT) if at_a_limit else (SURE, ENOUGH)
        flood = self._refused >= 2 * SURE and share > FLOOD_REFUSALS_SHARE and elapsed >= self._epoch / 5
        if not flood and (elapsed < self._epoch or settled < enough):
            return
        if at_a_limit and self._bearable == MANY_REFUSALS_SHARE:
            many = MANY_REFUSALS_SHARE_AT_LIMIT
        else:
            many = self._bearable
        if self._refused >= sure and share > many:
            self._cut(share, now, elapsed)
        elif at_a_limit:
            self._grow(share, elapsed)
        self._bearable_for -= 1
        if self._bearable_for <= 0:
            self._bearable = MANY_REFUSALS_SHARE
        self._begin(now)

    def _cut(self, share: float, now: float, elapsed: float) -> None:
        gate = self._gate
        if self._cut_for is not None and share >= LIMIT_SHRINK * self._cut_for[0]:
            self._bearable, self._bearable_for = min(0.9, 1.3 * share), TOLERANT_EPOCHS
            _, gate.rate, gate.limit = self._cut_for
            self._cut_for = None
            return
        whole = elapsed >= self._epoch and share < FLOOD_REFUSALS_SHARE
        self._cut_for = (share, gate.rate, gate.limit) if whole else None
        taken, asked_rate = (self._starts - self._refused) / elapsed, self._starts / elapsed
        if self._answered or not self._known:
            self._known = taken if self._answered else asked_rate
        rate = max(self._least, MIN_RATE_SHARE * asked_rate, taken)
        gate.rate = rate if gate.rate is None else min(rate, gate.rate)
        if self._answered:
            at_once = float(self._in_flight)
        else:
            at_once = LIMIT_SHRINK * gate.limit
        gate.limit = min(gate.limit, max(1.0, at_once))
        self._growth, self._calm, self._cut_at = LIMIT_GROWTH, 0, now

    def _grow(self, share: float, elapsed: float) -> None:
        gate = self._gate
        self._cut_for = None
        self._calm = self._calm + self._answered if share <= FEW_REFUSALS_SHARE else 0
        if self._calm >= CALM_ANSWERS:
            self._growth, self._calm = min(1.0, 2 * self._growth), 0
        elif share > FEW_REFUSALS_SHARE:
            self._growth = LIMIT_GROWTH
        gate.limit = min(self._most, max(gate.limit + 1, gate.limit * (1 + self._growth)))
        if gate.rate is not None:
            unused = share <= FEW_REFUSALS_SHARE and self._starts / elapsed < gate.rate / 2
            gate.rate = None if unused else gate.rate * (1 + self._growth)
