# SPDX-License-Identifier: Apache-2.0
"""When a run will end, told by how long its rows take: those that are done, and those that are not yet.

Short rows end first, so the rows that are done look quicker than all are, and the last ones of a run are its longest.
Rows under way count as taking longer than they have so far (E. L. Kaplan and P. Meier, JASA 53, 1958), and at the end
of the run the longest of those under way is waited for.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import pairwise

CLASS_FACTOR = 1.1
"""Durations are kept in classes, each so many times as long as the one before."""
FIRST_CLASS_SECONDS = 0.001
"""Seconds of the first class."""
MIN_DONE_ROWS = 5
"""Rows that must be done before anything is said."""
MIN_KNOWN_SHARE = 0.5
"""Share of rows whose duration must be known, by that estimate."""


class Pace:
    """Durations of rows in seconds. `done` says how many have ended."""

    def __init__(self) -> None:
        self.done = 0
        self._ended: Counter[int] = Counter()
        self._under_way: dict[int, float] = {}
        self._numbers = 0

    @property
    def under_way(self) -> int:
        """Rows that have begun and not ended."""
        return len(self._under_way)

    def begin(self) -> int:
        """Note that a row is asked; return the number that names it."""
        self._numbers += 1
        self._under_way[self._numbers] = time.monotonic()
        return self._numbers

    def end(self, number: int, *, answered: bool) -> None:
        """Note that the row `number` has its answer, or never gets one."""
        seconds = time.monotonic() - self._under_way.pop(number)
        if answered:
            self.done += 1
            self._ended[_class_of(seconds)] += 1

    def seconds_left(self, waiting: int) -> float | None:
        """Estimate the seconds until all rows are done, of which `waiting` have not begun; None while too little
        is known.

        As many rows stay under way as are now.
        """
        if self.done < MIN_DONE_ROWS or not (waiting or self._under_way):
            return None
        now = time.monotonic()
        ages = Counter(_class_of(now - began) for began in self._under_way.values())
        survival = _survival_shares(self._ended, ages)
        if survival[-1] > 1 - MIN_KNOWN_SHARE:
            return None
        at_once = max(1, len(self._under_way))
        rare = 1 / (at_once + 1)
        if not waiting:
            return max((_remaining_seconds(survival, age, rare) for age in ages), default=0.0)
        return waiting * _mean_seconds(survival) / at_once + _quantile_seconds(survival, rare)


def _class_of(seconds: float) -> int:
    return max(0, math.ceil(math.log(max(seconds, FIRST_CLASS_SECONDS) / FIRST_CLASS_SECONDS, CLASS_FACTOR)))


def _class_seconds(kind: int) -> float:
    return float(FIRST_CLASS_SECONDS * CLASS_FACTOR**kind)


def _survival_shares(ended: Counter[int], ages: Counter[int]) -> list[float]:
    """Return, by class of duration, the share of rows that take longer, up to the longest class seen."""
    longest = max([*ended, *ages])
    at_risk = ended.total() + ages.total()
    shares, share = [], 1.0
    for kind in range(longest + 1):
        if at_risk and ended[kind]:
            share *= 1 - ended[kind] / at_risk
        at_risk -= ended[kind] + ages[kind]
        shares.append(share)
    return shares


def _mean_seconds(survival: list[float]) -> float:
    """Return the mean seconds of a row; rows longer than any seen are taken to need twice the longest."""
    edges = [0.0, *(_class_seconds(kind) for kind in range(len(survival)))]
    widths = [upper - lower for lower, upper in pairwise(edges)]
    mean = sum(share * width for share, width in zip([1.0, *survival], widths, strict=False))
    return mean + survival[-1] * edges[-1]


def _quantile_seconds(survival: list[float], rare: float) -> float:
    """Return the seconds that only a share `rare` takes longer than; twice the longest that was seen where that is not
    known."""
    if survival[-1] > rare:
        return 2 * _class_seconds(len(survival) - 1)
    return _class_seconds(next(kind for kind, share in enumerate(survival) if share <= rare))


def _remaining_seconds(survival: list[float], age: int, rare: float) -> float:
    """Return the seconds that are left of a row that has taken `age` so far; as long again where no row took longer."""
    share = survival[age]
    later = [kind for kind in range(age + 1, len(survival)) if survival[kind] <= rare * share]
    if later and share:
        return _class_seconds(later[0]) - _class_seconds(age)
    return _class_seconds(age)
