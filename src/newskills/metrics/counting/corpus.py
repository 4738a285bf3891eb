# SPDX-License-Identifier: Apache-2.0
"""Scores of a corpus: a function of sums over samples, with its interval by the jackknife."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from newskills.base.records import Number
from newskills.base.stats import Z95

Sums = Sequence[float]


def jackknife(counts: Sequence[Sums | None], score: Callable[[Sums], float]) -> Number | None:
    """The score of the sums of columns, and its interval from leaving out each row in turn; None: no row."""
    rows = [row for row in counts if row]
    if not rows:
        return None
    totals = [sum(column) for column in zip(*rows, strict=True)]
    value, n = score(totals), len(rows)
    half = math.inf
    if n > 1:
        others = [score([total - own for total, own in zip(totals, row, strict=True)]) for row in rows]
        mean = math.fsum(others) / n
        half = Z95 * math.sqrt((n - 1) / n * math.fsum((other - mean) ** 2 for other in others))
    return Number(
        value=value, low=value - half, high=value + half, n=n, unscored=len(counts) - n, method="jackknife"
    )


def mean_number(numbers: Sequence[Number]) -> Number:
    """Of scores over the same samples: the mean of their intervals is never too narrow."""
    count = len(numbers)
    value, low, high = (
        math.fsum(getattr(number, bound) for number in numbers) / count for bound in ("value", "low", "high")
    )
    return Number(
        value=value,
        low=low,
        high=high,
        n=max(number.n for number in numbers),
        unscored=sum(number.unscored for number in numbers),
        method="jackknife",
    )
