# SPDX-License-Identifier: Apache-2.0
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.anytime import anytime_interval, excludes_mean, look_sizes
from newskills.base.stats import mean_interval

PATHS, LONGEST = 4000, 1500


@cache
def accepted(n: int, truth: float) -> tuple[int, int]:
    """Fewest and most correct answers of `n` that leave `truth` inside of the interval."""
    inside = [s for s in range(n + 1) if abs(s / n - truth) < 0.6 and not excludes_mean({0: n - s, 1: s}, truth)]
    return inside[0], inside[-1]


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.98])
def test_looking_after_every_problem_leaves_the_truth_out_in_less_than_five_percent(truth: float) -> None:
    draws = np.random.default_rng(7).random((PATHS, LONGEST)) < truth
    correct = draws.cumsum(axis=1)
    wrong = np.zeros(PATHS, dtype=bool)
    naive = np.zeros(PATHS, dtype=bool)
    for n in look_sizes(LONGEST)[::3]:
        low, high = accepted(n, truth)
        seen = correct[:, n - 1]
        wrong |= (seen < low) | (seen > high)
        naive |= np.abs(seen / n - truth) > 1.96 * math.sqrt(truth * (1 - truth) / n)
    assert wrong.mean() < 0.05
    assert naive.mean() > 0.2


@given(st.dictionaries(st.floats(0, 1), st.integers(1, 60), min_size=1, max_size=8))
def test_the_interval_holds_the_mean_and_excludes_what_it_says(values: dict[float, int]) -> None:
    mean = sum(value * count for value, count in values.items()) / sum(values.values())
    interval = anytime_interval(values)
    assert interval.low - 1e-6 <= mean <= interval.high + 1e-6
    for other in (0.01, 0.3, 0.5, 0.9):
        if min(abs(other - interval.low), abs(other - interval.high)) > 1e-5:
            assert excludes_mean(values, other) == (not interval.low < other < interval.high)


def test_it_is_wider_than_one_for_a_number_fixed_before() -> None:
    values = {0: 300, 1: 700}
    fixed, anytime = mean_interval(values), anytime_interval(values)
    assert anytime.method == "anytime"
    assert 1.5 < (anytime.high - anytime.low) / (fixed.high - fixed.low) < 2.0


def test_differences_and_values_outside() -> None:
    low, high, _ = anytime_interval({-1: 20, 0: 900, 1: 80}, -1, 1)
    assert 0 < low < 0.06 < high < 0.12
    assert excludes_mean({-1: 20, 0: 900, 1: 80}, 0, -1, 1)
    assert anytime_interval({0: 3, 1.5: 1}).high == math.inf
    assert not excludes_mean({0: 3, 1.5: 1}, 0.1)


def test_many_values_are_rounded_to_the_wide_side() -> None:
    draws = np.random.default_rng(1).beta(2, 3, size=600)
    interval = anytime_interval({float(value): 1 for value in draws})
    exact = anytime_interval(
        {
            round(float(value), 2): int(n)
            for value, n in zip(*np.unique(draws.round(2), return_counts=True), strict=True)
        }
    )
    assert interval.low < exact.low < draws.mean() < exact.high < interval.high


def test_looks_come_less_often_as_problems_are_more() -> None:
    numbers = look_sizes(14_000)
    assert numbers[:3] == (10, 11, 12)
    assert len(numbers) < 700
