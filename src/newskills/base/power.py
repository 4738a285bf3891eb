# SPDX-License-Identifier: Apache-2.0
"""How many problems and samples a comparison needs (E. Miller, "Adding Error Bars to Evals", arXiv:2411.00640, §5).

The difference of two systems on a problem varies from problem to problem (`between`), and because samples are drawn
(`within`). More samples of a problem reduce the second part alone: with k samples on each side the variance of one
problem's difference is between + within / k, and that of the mean over n problems is a n-th of it.

Power is that of the test that the comparison will use (`base.paired`): exact McNemar for single 0/1 samples on the same
problems, else t over problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.paired import smallest_discordance
from newskills.base.stats import Z95, binomial_tail, mean_std, t_critical, upper_share

EXACT_PAIRS = 400
"""Expected discordant pairs up to which McNemar's power is summed exactly; beyond, a normal distribution will do."""
FEWEST_DISCORDANT = 6
"""No split of fewer discordant pairs has p < 0.05."""
_NORMAL = NormalDist()


class DifferenceVariance(Struct, frozen=True):
    """Of the difference on one problem, in squared units of the score; `within` counts both systems. `paired`: both
    answer the same problems; `binary`: scores are 0 or 1."""

    between: float
    within: float
    paired: bool = True
    binary: bool = True

    def of(self, samples: int, difference: float = 0.0) -> float:
        """Return the variance with so many samples of each problem and system, at least what a true `difference`
        brings with it: single 0/1 answers that differ on average by 0.01 differ on one problem in a hundred."""
        variance = self.between + self.within / samples
        if not self.binary or not self.paired:
            return max(variance, 0.0)
        return max(variance, abs(difference) / samples - difference**2)

    def power(self, problems: int, samples: int, difference: float) -> float:
        """Return the share of comparisons with p < 0.05 (two-sided) where the true difference is `difference`."""
        variance = self.of(samples, difference)
        if self.binary and self.paired and samples == 1:
            return mcnemar_power(problems, min(1.0, variance + difference**2), abs(difference))
        return t_power(problems, variance, abs(difference))


def mcnemar_power(problems: int, discordance: float, difference: float) -> float:
    """Return the power of the exact test where a share `discordance` of the problems differs, more often one way.

    >>> round(mcnemar_power(790, 0.01, 0.01), 2)
    0.8
    """
    expected = problems * discordance
    winning = min(1.0, (1 + difference / discordance) / 2)
    if expected > EXACT_PAIRS:
        surplus = Z95 * math.sqrt(expected) + 1
        spread = math.sqrt(problems * (discordance - difference**2))
        return _NORMAL.cdf((problems * difference - surplus) / spread)
    width = 6 * math.sqrt(expected) + 6
    first, last = max(FEWEST_DISCORDANT, int(expected - width)), min(problems, int(expected + width))
    return math.fsum(
        _binomial_weight(pairs, problems, discordance) * _split_power(pairs, winning)
        for pairs in range(first, last + 1)
    )


def _binomial_weight(count: int, n: int, share: float) -> float:
    if share >= 1:
        return float(count == n)
    ways = math.lgamma(n + 1) - math.lgamma(count + 1) - math.lgamma(n - count + 1)
    return math.exp(ways + count * math.log(share) + (n - count) * math.log1p(-share))


def _split_power(pairs: int, winning: float) -> float:
    """Return the chance that so many discordant pairs, each won with this chance, split unevenly enough."""
    fewer = (pairs - _cached_discordance(pairs)) // 2
    return binomial_tail(fewer, pairs, winning) + binomial_tail(fewer, pairs, 1 - winning)


@lru_cache(maxsize=4096)
def _cached_discordance(pairs: int) -> int:
    return smallest_discordance(pairs)


def t_power(problems: int, variance: float, difference: float) -> float:
    """Return the power of Student's test over problems (W. Johnson and B. Welch, Biometrika 31, 1940: noncentral t)."""
    if variance <= 0:
        return 1.0
    freedom = problems - 1
    critical, shift = t_critical(freedom), difference * math.sqrt(problems / variance)
    return _NORMAL.cdf((shift - critical * (1 - 1 / (4 * freedom))) / math.sqrt(1 + critical**2 / (2 * freedom)))


def measured_variance(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], *, paired: bool
) -> DifferenceVariance:
    """Measure the variance from two systems' scores, a list of samples for each problem; the same problems in the
    same order if `paired`.

    With single samples nothing tells the parts apart: all variance counts as `between`, so that more samples promise
    nothing. Raises ValueError for fewer than two problems.
    """
    if min(len(before), len(after)) < 2:
        raise ValueError("at least two problems are needed")
    noise = [_sampling_variances(side) for side in (before, after)]
    if paired:
        total = mean_std(problem_differences(before, after))[1] ** 2
    else:
        total = sum(mean_std([math.fsum(own) / len(own) for own in side])[1] ** 2 for side in (before, after))
    return DifferenceVariance(
        between=max(0.0, total - sum(part for _, part in noise)),
        within=sum(whole for whole, _ in noise),
        paired=paired,
        binary=all(score in (0, 1) for side in (before, after) for own in side for score in own),
    )


def upper_bound(variance: DifferenceVariance, differences: Sequence[float]) -> DifferenceVariance:
    """Return a `variance` that the true one exceeds in 5 % of cases, from the `differences` of the problems.

    Their squares stand for how many problems differ, of as many as the variance of the squares implies (Dean and
    Pagano, J. Surv. Stat. Methodol. 3, 2015). Differences beyond 1 have no bound: then it is returned as it is.
    """
    squares = [difference**2 for difference in differences]
    if max(squares) > 1:
        return variance
    mean, deviation = mean_std(squares)
    if not mean:
        return replace(variance, between=upper_share(0, len(squares)))
    effective: float = len(squares)
    if deviation:
        effective = len(squares) * mean * (1 - mean) / deviation**2
    factor = upper_share(mean * effective, effective) / mean
    shift = math.fsum(differences) / len(differences)
    return replace(variance, between=factor * (variance.between + shift**2), within=factor * variance.within)


def problem_differences(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> list[float]:
    """Return how much the mean of each problem rose, the same problems in the same order."""
    return [math.fsum(b) / len(b) - math.fsum(a) / len(a) for a, b in zip(before, after, strict=True)]


def _sampling_variances(problems: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the mean variance of one sample around its problem's mean, and of the mean of the samples that there
    are."""
    repeated = [own for own in problems if len(own) > 1]
    if not repeated:
        return 0.0, 0.0
    variances = [mean_std(own)[1] ** 2 for own in repeated]
    of_means = [variance / len(own) for variance, own in zip(variances, repeated, strict=True)]
    return math.fsum(variances) / len(variances), math.fsum(of_means) / len(of_means)


def assumed_variance(
    accuracy: float, difference: float, within: float | None, *, paired: bool
) -> DifferenceVariance:
    """Assume the variance before there are two systems: one of this `accuracy` (0-1), and one that is better by
    `difference`.

    `within`: variance of one sample around its problem's chance where it is known; else half of all variance is. The
    gain is taken to be that of a share `difference` of the problems, from never to always right: the least even way.
    """
    whole = accuracy * (1 - accuracy)
    within = whole / 2 if within is None else min(within, whole)
    spread = 2 * (whole - within)
    if paired:
        spread = abs(difference) * (1 - abs(difference))
    return DifferenceVariance(between=spread, within=2 * within, paired=paired)


def problems_needed(variance: DifferenceVariance, samples: int, difference: float, power: float = 0.8) -> int:
    """Return how many problems give a true `difference` p < 0.05 (two-sided) with this `power`.

    >>> problems_needed(DifferenceVariance(0.0, 0.0), 1, 0.01)
    790
    """
    high = 2
    while variance.power(high, samples, difference) < power:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if variance.power(middle, samples, difference) < power:
            low = middle
        else:
            high = middle
    return high


def detectable_difference(variance: DifferenceVariance, samples: int, problems: int, power: float = 0.8) -> float:
    """Return the smallest true difference that is seen with this `power` on so many problems; 1 where none is."""
    low, high = 0.0, 1.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        if variance.power(problems, samples, middle) < power:
            low = middle
        else:
            high = middle
    return high
