# SPDX-License-Identifier: Apache-2.0
"""Intervals that hold at every number of problems at once, so that one may look after each and stop when it suffices.

A confidence sequence by betting (I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by
betting", J. R. Stat. Soc. B 86, 2024, arXiv:2010.09686): who bets against a mean m on each new value wins, in
expectation, nothing if m is true. By Ville's inequality the chance that the capital ever reaches 1/α is α at most, so
the means that have not yet lost that much to a gambler are a 1 - α interval at all times. The capital is spread over
`BET_STAKES` (their "grid Kelly"), which makes it independent of the order of the values: a count of each will do.

What is assumed: values within known bounds, and problems that come in random order. An interval is wider than one for
a number of problems that was fixed before: about 1.75 times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Literal

from newskills.base.stats import Interval

ANYTIME: Literal["anytime"] = "anytime"
BET_STAKES = tuple(0.95 / 1.6**step for step in range(16))
"""Shares of what a bet may cost at most: from bold ones, for few problems, to those that pay over a million."""
ERROR_RATE = 0.05
MAX_DISTINCT_VALUES = 256
"""Distinct values above which they are rounded to so many steps, and the interval is wider by the rounding."""
_TOLERANCE = 1e-6


def anytime_interval(values: Mapping[float, float], low: float = 0.0, high: float = 1.0) -> Interval:
    """Return the 95 % interval of the mean; `values`: value of a problem → how many problems have it, all of them
    from `low` to `high`.

    Infinite where a value is outside.
    """
    if any(not low <= value <= high for value in values):
        return Interval(-math.inf, math.inf, ANYTIME)
    shares, slack = _rounded_shares({(value - low) / (high - low): count for value, count in values.items()})
    least = max(0.0, _least_mean(shares) - slack)
    most = min(1.0, 1.0 - _least_mean(_mirrored_shares(shares)) + slack)
    return Interval(low + least * (high - low), low + most * (high - low), ANYTIME)


def excludes_mean(values: Mapping[float, float], mean: float, low: float = 0.0, high: float = 1.0) -> bool:
    """Return whether `mean` is outside of `anytime_interval`, for a fraction of its work. False where a value is
    outside."""
    if any(not low <= value <= high for value in values):
        return False
    shares, slack = _rounded_shares({(value - low) / (high - low): count for value, count in values.items()})
    share = (mean - low) / (high - low)
    needed = math.log(2 / ERROR_RATE)
    return (
        _log_capital(shares, share + slack) >= needed
        or _log_capital(_mirrored_shares(shares), 1 - share + slack) >= needed
    )


def _least_mean(shares: Mapping[float, float]) -> float:
    """Return the smallest mean that has not lost: capital falls as the mean that is bet against rises."""
    n = sum(shares.values())
    lost, kept = 0.0, math.fsum(share * count for share, count in shares.items()) / n
    needed = math.log(2 / ERROR_RATE)
    while kept - lost > _TOLERANCE:
        middle = (lost + kept) / 2
        if _log_capital(shares, middle) >= needed:
            lost = middle
        else:
            kept = middle
    return lost


def _log_capital(shares: Mapping[float, float], mean: float) -> float:
    """Return the logarithm of the capital of bets that values are larger than `mean`, one unit spread evenly over
    `BET_STAKES`."""
    if mean <= 0 or mean >= 1:
        return 0.0
    growth = [(share / mean - 1, count) for share, count in shares.items()]
    logs = [math.fsum(count * math.log1p(stake * gain) for gain, count in growth) for stake in BET_STAKES]
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(log - largest) for log in logs) / len(BET_STAKES))


def _mirrored_shares(shares: Mapping[float, float]) -> dict[float, float]:
    return {1 - share: count for share, count in shares.items()}


def _rounded_shares(shares: Mapping[float, float]) -> tuple[Mapping[float, float], float]:
    """Return (the same on fewer distinct values, how far one may have moved)."""
    if len(shares) <= MAX_DISTINCT_VALUES:
        return shares, 0.0
    rounded: dict[float, float] = {}
    for share, count in shares.items():
        step = round(share * MAX_DISTINCT_VALUES) / MAX_DISTINCT_VALUES
        rounded[step] = rounded.get(step, 0) + count
    return rounded, 0.5 / MAX_DISTINCT_VALUES


@cache
def look_sizes(problems: int) -> tuple[int, ...]:
    """Return the numbers of problems at which to look, up to `problems`: from 10 on, then one in a hundred
    more."""
    numbers, at = [], 10
    while at <= problems:
        numbers.append(at)
        at = max(at + 1, math.ceil(at * 1.01))
    return tuple(numbers)
