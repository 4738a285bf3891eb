# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of scores, without numpy: estimators and 95 % intervals.

The independent unit is a problem; samples of one problem correlate. Hence an interval is always taken over
problems, one value each (E. Miller, "Adding Error Bars to Evals", arXiv:2411.00640).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

T = TypeVar("T")

Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


class Interval(NamedTuple):
    """Bounds at 95 %, and how they were found."""

    low: float
    high: float
    method: Literal["wilson", "cluster", "anytime"]


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Return the chance that k of `samples` drawn without replacement hold a correct one (Chen et al.,
    arXiv:2107.03374).

    >>> pass_at_k(4, 1, 2)
    0.5
    """
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} of {samples} samples is not defined")
    return 1.0 - math.comb(samples - correct, k) / math.comb(samples, k)


def mean_std(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation (ddof 1); the latter is NaN for less than two values."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def quantile_of(ordered: Sequence[float], share: float) -> float:
    """Return the quantile of ascending values, between two of them in proportion (as `numpy.percentile` does).

    >>> quantile_of([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 2)
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])


def wilson_interval(share: float, n: float, critical: float = Z95) -> tuple[float, float]:
    """Return the score interval of a share of `n` (E. B. Wilson, JASA 22, 1927); never outside 0–1, not empty at 0
    or 1.

    >>> [round(bound, 4) for bound in wilson(0.5, 10)]
    [0.2366, 0.7634]
    """
    square = critical * critical
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = critical / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def mean_interval(values: Mapping[float, int]) -> Interval:
    """Return the interval of the mean over independent problems; `values`: value of a problem → how many problems
    have it.

    Only 0 and 1: Wilson. Other values within 0–1 (averages over samples of a problem): Wilson with the effective
    number of problems that the variance between problems implies, and Student's t (Dean and Pagano, J. Surv. Stat.
    Methodol. 3, 2015). Values outside: Student's t, infinite for a single problem.
    """
    n = sum(values.values())
    mean = math.fsum(value * count for value, count in values.items()) / n
    if all(value in (0, 1) for value in values):
        return Interval(*wilson_interval(mean, n), "wilson")
    bounded = all(0 <= value <= 1 for value in values)
    if n == 1:
        if bounded:
            return Interval(0.0, 1.0, "cluster")
        return Interval(-math.inf, math.inf, "cluster")
    variance = math.fsum((value - mean) ** 2 * count for value, count in values.items()) / (n - 1)
    if bounded:
        # 1 - mean would be 0 for a mean that differs from 1 by less than floats tell
        rest = math.fsum((1 - value) * count for value, count in values.items()) / n
        effective = n * mean * rest / variance if variance > 0 else n
        return Interval(*wilson_interval(mean, effective, t_critical(n - 1)), "cluster")
    half = t_critical(n - 1) * math.sqrt(variance / n)
    return Interval(mean - half, mean + half, "cluster")


def bootstrap_interval(
    problems: Sequence[T], statistic: Callable[[Sequence[T]], float], *, resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % percentile interval of a statistic that is no mean, by drawing problems with replacement.

    The same input gives the same interval (Efron, Ann. Stat. 7, 1979).
    """
    draw = random.Random(seed)  # noqa: S311 - repeatable on purpose, no secret
    statistics = sorted(statistic(draw.choices(problems, k=len(problems))) for _ in range(resamples))
    return statistics[round(0.025 * (resamples - 1))], statistics[round(0.975 * (resamples - 1))]


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the agreement of two raters beyond chance (J. Cohen, Educ. Psychol. Meas. 20, 1960); 1 where both always
    use the same single label.

    >>> round(cohen_kappa([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b")]), 2)
    0.5
    """
    first, second = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    by_chance = sum(count * second[label] for label, count in first.items()) / len(pairs) ** 2
    agreed = sum(first_label == label for first_label, label in pairs) / len(pairs)
    if by_chance == 1:
        return 1.0
    return (agreed - by_chance) / (1 - by_chance)


def krippendorff_alpha(units: Sequence[Sequence[str | float]]) -> float:
    """Return the agreement of raters beyond chance: 1 for perfect, 0 for chance (K. Krippendorff, Content Analysis,
    2004, §11.3).

    units  ratings of one thing, by any number of raters; numbers differ by their squared distance, texts are equal or
           not. Things with fewer than two ratings say nothing. NaN where nothing differs, or nothing is rated twice.

    >>> round(krippendorff_alpha([("a", "a"), ("b", "b"), ("a", "b"), ("b", "b")]), 3)
    0.533
    """
    rated = [unit for unit in units if len(unit) > 1]
    totals = Counter(value for unit in rated for value in unit)
    size = totals.total()
    observed = math.fsum(_pair_distances(Counter(unit)) / (len(unit) - 1) for unit in rated)
    expected = _pair_distances(totals) / (size - 1) if size > 1 else 0.0
    if expected == 0:
        return math.nan
    return 1 - observed / expected


def _pair_distances(counts: Mapping[str | float, int]) -> float:
    """Return the distances of all ordered pairs of values."""
    numbers = {value: count for value, count in counts.items() if not isinstance(value, str)}
    if len(numbers) == len(counts):
        size = sum(numbers.values())
        total = math.fsum(value * count for value, count in numbers.items())
        squares = math.fsum(value * value * count for value, count in numbers.items())
        return 2 * (size * squares - total * total)
    size = sum(counts.values())
    return float(size * size - sum(count * count for count in counts.values()))


def binomial_tail(at_most: float, n: float, share: float = 0.5) -> float:
    """Return P(X ≤ `at_most`) of `n` tosses of a coin that falls on heads with this `share` (NIST DLMF 8.17.5).

    >>> round(binomial_tail(1, 4), 4)
    0.3125
    """
    if at_most < 0 or at_most >= n:
        return float(at_most >= n)
    return _beta_share(n - at_most, at_most + 1, 1 - share)


def upper_share(count: float, n: float) -> float:
    """Return the share of which a sample of `n` holds no more than `count` in 5 % of cases: an upper bound at 95 %
    (Clopper and Pearson, Biometrika 26, 1934). A sum of values within 0–1 serves as a `count`, too.

    >>> round(upper_share(1, 200), 4)
    0.0235
    """
    low, high = min(1.0, count / n), 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if binomial_tail(count, n, middle) > 0.05:
            low = middle
        else:
            high = middle
    return high


def t_two_sided(t: float, freedom: int) -> float:
    """Return P(|T| ≥ |t|) of Student's distribution."""
    return _beta_share(freedom / 2, 0.5, freedom / (freedom + t * t))


@lru_cache(maxsize=1024)
def t_critical(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's distribution, to 1e-9."""
    low, high = 0.0, 13.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if t_two_sided(middle, freedom) > 0.05:
            low = middle
        else:
            high = middle
    return high


def _beta_share(a: float, b: float, x: float) -> float:
    """Compute the regularised incomplete beta function I_x(a, b) (NIST DLMF 8.17.22, on the side where it
    converges fast)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1.0 - scale * _beta_fraction(b, a, 1 - x) / b
    return scale * _beta_fraction(a, b, x) / a


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Compute the continued fraction of DLMF 8.17.22 by Lentz's method, to 1e-15; needs about sqrt(a + b) steps."""
    upper, lower = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            lower = 1.0 / (1.0 + term * lower)
            upper = 1.0 + term / upper
            value *= lower * upper
        if abs(lower * upper - 1.0) < 1e-15:
            break
    return value
