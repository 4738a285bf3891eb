# SPDX-License-Identifier: Apache-2.0
"""Scores of a corpus: a function of sums over samples, with its interval by the jackknife."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from newskills.base.records import Number
from newskills.base.stats import Z95

Sums = Sequence[float]


def jackknife_number(counts: Sequence[Sums | None], score: Callable[[Sums], float]) -> Number | None:
    """Return the score of the sums of columns, and its interval from leaving out each row in turn; None: no row."""
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


def sections_jackknife(
    counts: Mapping[tuple[str, tuple[float, ...]], int], score: Callable[[Mapping[str, Sums]], float | None]
) -> Number | None:
    """Return the score of the sums of each section, and its interval from leaving out each sample in turn; `counts`:
    (section, what a sample adds) → how many add it.

    Samples that add the same are left out once, for all of them. A section without samples is not shown to `score`,
    which says None where it has nothing to say; None, too, where there are no samples.
    """
    sizes: Counter[str] = Counter()
    totals: dict[str, list[float]] = {}
    for (section, row), times in counts.items():
        sizes[section] += times
        sums = totals.setdefault(section, [0.0] * len(row))
        totals[section] = [total + times * own for total, own in zip(sums, row, strict=True)]
    if not totals:
        return None
    value, n = score(totals), sum(sizes.values())
    if value is None:
        return None
    left_out: list[tuple[float, int]] = []
    for (section, row), times in counts.items():
        rest: dict[str, Sums] = {name: sums for name, sums in totals.items() if name != section}
        if sizes[section] > 1:
            rest[section] = [total - own for total, own in zip(totals[section], row, strict=True)]
        if rest and (other := score(rest)) is not None:
            left_out.append((other, times))
    used = sum(times for _, times in left_out)
    half = math.inf
    if used > 1:
        mean = math.fsum(other * times for other, times in left_out) / used
        squares = math.fsum(times * (other - mean) ** 2 for other, times in left_out)
        half = Z95 * math.sqrt((used - 1) / used * squares)
    return Number(value=value, low=value - half, high=value + half, n=n, method="jackknife")


def mean_or_none(values: Sequence[float]) -> float | None:
    """Return the mean; None where there is no value."""
    if not values:
        return None
    return math.fsum(values) / len(values)


def mean_number(numbers: Sequence[Number]) -> Number:
    """Average scores over the same samples: the mean of their intervals is never too narrow."""
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
