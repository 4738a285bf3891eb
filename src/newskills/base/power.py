# SPDX-License-Identifier: Apache-2.0
"""How many problems and samples a comparison needs (E. Miller, "Adding Error Bars to Evals", arXiv:2411.00640, §5).

The difference of two systems on a problem varies from problem to problem (`between`), and because samples are drawn
(`within`). More samples of a problem reduce the second part alone: with k samples on each side the variance of one
problem's difference is between + within / k, and that of the mean over n problems is a n-th of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from msgspec import Struct

from newskills.base.stats import Z95, mean_std


class DifferenceVariance(Struct, frozen=True):
    """Of the difference on one problem, in squared units of the score; `within` counts both systems."""

    between: float
    within: float

    def of(self, samples: int) -> float:
        """With so many samples of each problem and system."""
        return self.between + self.within / samples


def measured(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], *, paired: bool
) -> DifferenceVariance:
    """From two systems' scores, a list of samples for each problem; the same problems in the same order if `paired`.

    With single samples nothing tells the parts apart: all variance counts as `between`, so that more samples promise
    nothing. Raises ValueError for fewer than two problems.
    """
    if min(len(before), len(after)) < 2:
        raise ValueError("at least two problems are needed")
    noise = [_sampling(side) for side in (before, after)]
    if paired:
        differences = [math.fsum(b) / len(b) - math.fsum(a) / len(a) for a, b in zip(before, after, strict=True)]
        total = mean_std(differences)[1] ** 2
    else:
        total = sum(mean_std([math.fsum(own) / len(own) for own in side])[1] ** 2 for side in (before, after))
    return DifferenceVariance(
        between=max(0.0, total - sum(part for _, part in noise)), within=sum(whole for whole, _ in noise)
    )


def _sampling(problems: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Mean variance of one sample around its problem's mean, and of the mean of the samples that there are."""
    repeated = [own for own in problems if len(own) > 1]
    if not repeated:
        return 0.0, 0.0
    variances = [mean_std(own)[1] ** 2 for own in repeated]
    of_means = [variance / len(own) for variance, own in zip(variances, repeated, strict=True)]
    return math.fsum(variances) / len(variances), math.fsum(of_means) / len(of_means)


def assumed(accuracy: float, difference: float, within: float | None, *, paired: bool) -> DifferenceVariance:
    """Before there are two systems: one of this `accuracy` (0-1), and one that is better by `difference`.

    `within`: variance of one sample around its problem's chance where it is known; else half of all variance is. The
    gain is taken to be that of a share `difference` of the problems, from never to always right: the least even way.
    """
    whole = accuracy * (1 - accuracy)
    within = whole / 2 if within is None else min(within, whole)
    spread = abs(difference) * (1 - abs(difference)) if paired else 2 * (whole - within)
    return DifferenceVariance(between=spread, within=2 * within)


def problems_needed(variance: float, difference: float, power: float = 0.8) -> int:
    """So that a true `difference` has p < 0.05 (two-sided) with this `power`; `variance`: of one problem's difference.

    >>> problems_needed(0.25, 0.1)
    197
    """
    needed = variance * ((Z95 + NormalDist().inv_cdf(power)) / difference) ** 2
    return max(2, math.ceil(needed))


def detectable_difference(variance: float, problems: int, power: float = 0.8) -> float:
    """The smallest true difference that is seen with this `power` on so many problems."""
    return (Z95 + NormalDist().inv_cdf(power)) * math.sqrt(variance / problems)
