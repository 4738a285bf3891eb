# SPDX-License-Identifier: Apache-2.0
import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base import stats

SCORES = st.lists(st.booleans(), min_size=1, max_size=8)


@given(SCORES)
def test_pass_at_k_is_the_share_of_draws_with_a_correct_sample(scores: list[bool]) -> None:
    for k in range(1, len(scores) + 1):
        draws = list(combinations(scores, k))
        assert stats.pass_at_k(len(scores), sum(scores), k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_pass_at_k_of_more_samples_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="pass@3 of 2"):
        stats.pass_at_k(2, 1, 3)


def test_mean_and_deviation() -> None:
    assert stats.mean_std([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx((5, math.sqrt(32 / 7)))
    assert math.isnan(stats.mean_std([3.0])[1])


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    [(0.5, 10, 0.2366, 0.7634), (0.0, 10, 0.0, 0.2775), (1.0, 30, 0.8865, 1.0), (0.2, 100, 0.1334, 0.2888)],
)
def test_wilson_against_published_values(share: float, n: int, low: float, high: float) -> None:
    assert stats.wilson(share, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("freedom", "critical"),
    [(1, 12.7062), (2, 4.30265), (10, 2.22814), (29, 2.04523), (999, 1.96234), (10**6, 1.95997)],
)
def test_quantiles_of_student_against_tables(freedom: int, critical: float) -> None:
    assert stats.t_critical(freedom) == pytest.approx(critical, abs=5e-5)


@pytest.mark.parametrize(
    ("t", "freedom", "p"), [(1.0, 1, 0.5), (2.0, 10, 0.07338803), (0.0, 5, 1.0), (-3.0, 4, 0.03994)]
)
def test_two_sided_student(t: float, freedom: int, p: float) -> None:
    assert stats.t_two_sided(t, freedom) == pytest.approx(p, abs=5e-6)


@given(st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=1, max_size=40))
def test_an_interval_of_scores_holds_the_mean_and_stays_within_its_range(values: list[float]) -> None:
    low, high, _ = stats.mean_interval({value: values.count(value) for value in values})
    mean = sum(values) / len(values)
    assert 0 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1
    assert low < high


NEAR_ONE = [1 - 2.0**-53, 1 - 2.0**-52, 1 - 1e-12]


@given(
    st.lists(
        st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 5e-324, 1e-200, 1e-17, *NEAR_ONE])),
        min_size=1,
        max_size=40,
    )
)
def test_an_interval_bears_values_that_differ_by_rounding_only(values: list[float]) -> None:
    """pass@32 of 64 samples is 1 less some 1e-17 for many problems, and their mean is 1."""
    low, high, _ = stats.mean_interval({value: values.count(value) for value in values})
    assert 0 <= low <= high <= 1


def test_intervals_say_how_they_were_found() -> None:
    assert stats.mean_interval({0: 7, 1: 3}) == (*stats.wilson(0.3, 10), "wilson")
    assert stats.mean_interval({0.5: 10}).method == "cluster"
    low, high, _ = stats.mean_interval({1.0: 1, 2.0: 1, 3.0: 1})
    assert (low, high) == pytest.approx((2 - 4.30265 / math.sqrt(3), 2 + 4.30265 / math.sqrt(3)), abs=1e-4)


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = random.Random(3)
    hits = 0
    for _ in range(400):
        chances = [draw.random() ** 2 for _ in range(60)]
        values = [sum(draw.random() < chance for _ in range(4)) / 4 for chance in chances]
        low, high, _ = stats.mean_interval({value: values.count(value) for value in values})
        hits += low <= 1 / 3 <= high
    assert 0.92 < hits / 400 < 0.98


def test_the_bootstrap_repeats_itself_and_agrees_with_theory() -> None:
    values = [float(i % 10) for i in range(200)]
    found = stats.bootstrap(values, lambda drawn: sum(drawn) / len(drawn))
    assert found == stats.bootstrap(values, lambda drawn: sum(drawn) / len(drawn))
    half = 1.96 * stats.mean_std(values)[1] / math.sqrt(200)
    assert found == pytest.approx((4.5 - half, 4.5 + half), abs=0.1)
