# SPDX-License-Identifier: Apache-2.0
"""Two systems on the same problems: difference, 95 % interval, p-value, and what could have been seen at all.

A problem is the independent unit; the samples of one problem correlate, so whole problems are resampled (E. Miller,
"Adding Error Bars to Evals", arXiv:2411.00640). No numpy: a bootstrap of a mean needs the distinct differences and how
many problems have each, and its time hardly depends on the number of problems.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Literal

from msgspec import Struct

from newskills.base.stats import Z95, binomial_tail, mean_std, quantile_of, t_critical, t_two_sided

RESAMPLES = 2000
Z80 = 0.8416212335729143
"""80 % quantile of the normal distribution: the usual power."""
SIGNIFICANCE_LEVEL = 0.05
_MAX_EXACT_PAIRS = 500
"""Discordant pairs up to which whole numbers are summed; beyond, the incomplete beta function is as good to 1e-10."""
_MAX_COUNTED_DIFFERENCES = 64
"""Distinct differences up to which counts are drawn instead of problems."""
_MIN_NORMAL_PROBLEMS = 1000
"""Problems beyond which a mean of differences is normal to within the third digit of its interval's width."""

Method = Literal["mcnemar", "paired t"]


class PairedDifference(Struct, frozen=True, kw_only=True):
    """`difference`: after less before, over `n` problems with a score on both sides, in the unit of the scores.

    low, high             95 % interval: bootstrap over problems, percentiles widened for small n
    p_value               two-sided; exact McNemar test for single 0/1 samples, else t over the problems' means
    standard_error        of the difference
    smallest_significant  a smaller difference would not have had p < 0.05 in these data
    minimum_detectable    a true difference of this size has p < 0.05 in 80 % of such comparisons
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    method: Method
    standard_error: float
    smallest_significant: float
    minimum_detectable: float


class PairedTest(Struct, frozen=True, kw_only=True):
    """The part of a `PairedDifference` that needs no bootstrap."""

    difference: float
    p_value: float
    n: int


def paired_test(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> PairedTest:
    """Compare two systems as `paired_difference` does, without intervals, in a fiftieth of its time. Raises ValueError
    if fewer than two problems are common."""
    pairs = _common_pairs(before, after)
    differences = _problem_differences(pairs)
    counts = Counter(differences)
    if _is_single(pairs):
        p_value = mcnemar(counts[-1.0], counts[1.0])
    else:
        p_value = _t_test(differences)
    return PairedTest(difference=mean_std(differences)[0], p_value=p_value, n=len(pairs))


def paired_difference(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], *, seed: int = 0
) -> PairedDifference:
    """Compare two systems on the same problems in the same order; each item holds the scores of one problem's
    samples.

    Problems without a score on either side are left out. The same input gives the same figures. Raises ValueError if
    fewer than two problems are left.
    """
    pairs = _common_pairs(before, after)
    differences = _problem_differences(pairs)
    binary, single = _is_binary(pairs), _is_single(pairs)
    counts = Counter(differences)
    weights: dict[float, float] = dict(counts.items())
    if binary:
        weights = _smoothed_weights(weights, pairs)
    mean, _ = mean_std(differences)
    error = _standard_error(weights)
    low, high = _mean_bounds(weights, seed, smoothed=binary)
    if single:
        gained, lost = counts[1.0], counts[-1.0]
        p_value, significant = mcnemar(lost, gained), smallest_discordance(gained + lost) / len(pairs)
    else:
        p_value = _t_test(differences)
        significant = t_critical(len(pairs) - 1) * error
    return PairedDifference(
        difference=mean,
        low=min(low, mean),
        high=max(high, mean),
        p_value=p_value,
        n=len(pairs),
        method="mcnemar" if single else "paired t",
        standard_error=error,
        smallest_significant=significant,
        minimum_detectable=significant + Z80 * error,
    )


_Pairs = list[tuple[Sequence[float], Sequence[float]]]


def _common_pairs(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> _Pairs:
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a and b]
    if len(pairs) < 2:
        raise ValueError("at least two common problems are needed for a comparison")
    return pairs


def _problem_differences(pairs: _Pairs) -> list[float]:
    return [math.fsum(b) / len(b) - math.fsum(a) / len(a) for a, b in pairs]


def _is_binary(pairs: _Pairs) -> bool:
    return all(score in (0, 1) for score in chain.from_iterable(chain.from_iterable(pairs)))


def _is_single(pairs: _Pairs) -> bool:
    """Return whether each problem has one sample on either side, right or wrong: what McNemar's test takes."""
    return all(len(a) == len(b) == 1 for a, b in pairs) and _is_binary(pairs)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value of discordant pairs: the chance of a split at least as uneven
    (Psychometrika 12, 1947).

    >>> mcnemar(0, 5)
    0.0625
    """
    total = only_first + only_second
    fewer = min(only_first, only_second)
    if total > _MAX_EXACT_PAIRS:
        return min(1.0, 2 * binomial_tail(fewer, total))
    terms = accumulate(range(fewer), lambda term, i: term * (total - i) // (i + 1), initial=1)
    return min(1.0, float(2 * sum(terms) / 2**total))


def spent_level(test: int, alpha: float) -> float:
    """Return the level of a test, counted from 1: alpha · 6 / (π² k²), which adds up to alpha over all tests.

    >>> round(spent_level(1, 0.05), 4), round(spent_level(2, 0.05), 4)
    (0.0304, 0.0076)
    """
    return alpha * 6 / (math.pi * test) ** 2


def smallest_discordance(total: int) -> int:
    """Return the smallest surplus of one side among `total` discordant pairs with p < 0.05; 6 where no split reaches
    that.

    >>> smallest_discordance(10)
    8
    """
    surplus = max(int(1.8 * math.sqrt(total)), 0)
    surplus += (total - surplus) % 2
    while surplus <= total:
        if mcnemar((total - surplus) // 2, (total + surplus) // 2) < SIGNIFICANCE_LEVEL:
            return surplus
        surplus += 2
    return 6


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (S. Holm, Scand. J. Statist. 6, 1979): below 0.05 for a family-wise
    error of 5 %.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def _t_test(differences: Sequence[float]) -> float:
    """Return the p-value of Student's t over problems; of the sign test where all differences are alike."""
    mean, deviation = mean_std(differences)
    if deviation == 0:
        if mean == 0:
            return 1.0
        return 2.0 ** (1 - len(differences))
    return t_two_sided(mean / (deviation / math.sqrt(len(differences))), len(differences) - 1)


def _smoothed_weights(
    counts: dict[float, float], pairs: Sequence[tuple[Sequence[float], Sequence[float]]]
) -> dict[float, float]:
    """Return difference → weight, with two problems more whose samples are tosses of a coin.

    For single samples this adds half a pair to each cell, which fixes intervals of few or no discordant pairs (Agresti
    and Min, Stat. Med. 24, 2005). k samples of a coin on both sides differ by 1/√(2k) on average, hence ±1/√k at half
    of the weight.
    """
    samples = sum(len(a) + len(b) for a, b in pairs) / (2 * len(pairs))
    step = 1 / math.sqrt(samples)
    weights = dict(counts)
    for value, weight in ((-step, 0.5), (0.0, 1.0), (step, 0.5)):
        weights[value] = weights.get(value, 0) + weight
    return weights


def _standard_error(weights: dict[float, float]) -> float:
    total = math.fsum(weights.values())
    mean = math.fsum(value * weight for value, weight in weights.items()) / total
    squares = math.fsum((value - mean) ** 2 * weight for value, weight in weights.items())
    return math.sqrt(squares / (total - 1) / total)


def _mean_bounds(weights: dict[float, float], seed: int, *, smoothed: bool) -> tuple[float, float]:
    """Return the bounds of the mean, by bootstrap; the negative of the weights has the negative bounds."""
    own = sorted(weights.items())
    turned = sorted((-value, weight) for value, weight in own)
    low, high = _bootstrap_bounds(dict(max(own, turned)), seed, smoothed=smoothed)
    if own == turned:
        return (low - high) / 2, (high - low) / 2
    if own < turned:
        return -high, -low
    return low, high


def _bootstrap_bounds(weights: dict[float, float], seed: int, *, smoothed: bool) -> tuple[float, float]:
    """Return percentiles of the mean of problems drawn with replacement, at levels that allow for small n.

    A plain percentile interval is too narrow by √((n-1)/n) and by the difference of t and normal (T. Hesterberg, "What
    Teachers Should Know About the Bootstrap", Am. Stat. 69, 2015, §5); smoothing has made up for both.
    """
    total = round(math.fsum(weights.values()))
    critical = t_critical(total - 1)
    if len(weights) > _MAX_COUNTED_DIFFERENCES and total > _MIN_NORMAL_PROBLEMS:
        mean = math.fsum(value * weight for value, weight in weights.items()) / total
        half = critical * _standard_error(weights)
        return mean - half, mean + half
    draw = random.Random(seed)  # noqa: S311 - repeatable on purpose, no secret
    means = sorted(_resampled_means(weights, total, draw))
    level = Z95 if smoothed else critical * math.sqrt(total / (total - 1))
    tail = math.erfc(level / math.sqrt(2)) / 2
    return quantile_of(means, tail), quantile_of(means, 1 - tail)


def _resampled_means(weights: dict[float, float], total: int, draw: random.Random) -> list[float]:
    """Draw `RESAMPLES` means of `total` draws each."""
    values = sorted(weights)
    if len(values) > _MAX_COUNTED_DIFFERENCES:
        up_to = list(accumulate(weights[value] for value in values))
        return [math.fsum(draw.choices(values, cum_weights=up_to, k=total)) / total for _ in range(RESAMPLES)]
    shares, left = [], math.fsum(weights.values())
    for value in values:
        shares.append((value, min(1.0, weights[value] / left)))
        left = max(left - weights[value], 1e-300)
    return [_drawn_sum(shares, total, draw) / total for _ in range(RESAMPLES)]


def _drawn_sum(shares: Sequence[tuple[float, float]], total: int, draw: random.Random) -> float:
    """Return the sum of `total` draws; `shares`: value, and its share of what the values before it leave."""
    drawn_sum = 0.0
    for value, share in shares:
        count = binomial(draw, total, share)
        drawn_sum += value * count
        total -= count
        if not total:
            break
    return drawn_sum


def binomial(draw: random.Random, n: int, p: float) -> int:
    """Draw from the binomial distribution, in a time that does not grow with `n`.

    Waiting times where few successes are expected (L. Devroye, Non-Uniform Random Variate Generation, 1986, §X.4.3),
    else transformed rejection (W. Hörmann, J. Stat. Comput. Simul. 46, 1993: BTRS).
    """
    if p > 0.5:
        return n - binomial(draw, n, 1 - p)
    if n * p < 10:
        return _by_waiting(draw, n, p)
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    accept, alpha = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * spread
    mode, odds = int((n + 1) * p), math.log(p / (1 - p))
    peak = math.lgamma(mode + 1) + math.lgamma(n - mode + 1)
    while True:
        u, v = draw.random() - 0.5, draw.random()
        edge = 0.5 - abs(u)
        if edge <= 0:
            continue
        k = math.floor((2 * a / edge + b) * u + n * p + 0.5)
        if edge >= 0.07 and v <= accept:
            return k
        if not 0 <= k <= n or v == 0:
            continue
        height = peak - math.lgamma(k + 1) - math.lgamma(n - k + 1) + (k - mode) * odds
        if math.log(v * alpha / (a / (edge * edge) + b)) <= height:
            return k


def _by_waiting(draw: random.Random, n: int, p: float) -> int:
    if p <= 0:
        return 0
    failure = math.log1p(-p)
    count, tried = 0, 0
    while True:
        tried += int(math.log(1.0 - draw.random()) / failure) + 1
        if tried > n:
            return count
        count += 1
