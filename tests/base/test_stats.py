# SPDX-License-Identifier: Apache-2.0
import math
import random
from collections.abc import Sequence
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
    assert stats.wilson_interval(share, n) == pytest.approx((low, high), abs=5e-5)


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
    assert stats.mean_interval({0: 7, 1: 3}) == (*stats.wilson_interval(0.3, 10), "wilson")
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
    found = stats.bootstrap_interval(values, lambda drawn: sum(drawn) / len(drawn))
    assert found == stats.bootstrap_interval(values, lambda drawn: sum(drawn) / len(drawn))
    half = 1.96 * stats.mean_std(values)[1] / math.sqrt(200)
    assert found == pytest.approx((4.5 - half, 4.5 + half), abs=0.1)


def test_the_bootstrap_leaves_out_a_fortieth_on_either_side() -> None:
    """Of 1,001 statistics in order, those at 2.5 and 97.5 per cent."""
    values = iter(random.Random(0).sample(range(1001), 1001))
    assert stats.bootstrap_interval([0], lambda drawn: next(values), resamples=1001) == (25, 975)


def test_the_bootstrap_draws_as_many_problems_as_there_are_a_thousand_times() -> None:
    sizes: list[int] = []
    drawn_values: set[int] = set()

    def statistic(drawn: Sequence[int]) -> float:
        sizes.append(len(drawn))
        drawn_values.update(drawn)
        return 0.0

    stats.bootstrap_interval([1, 2, 3], statistic)
    assert sizes == [3] * 1000
    assert drawn_values == {1, 2, 3}
    assert stats.bootstrap_interval([1, 2, 9], sum) != stats.bootstrap_interval(
        [1, 2, 9], sum, resamples=20, seed=5
    )


@pytest.mark.parametrize(("k", "samples"), [(0, 2), (3, 2), (-1, 2)])
def test_pass_at_k_is_defined_from_one_to_all(k: int, samples: int) -> None:
    with pytest.raises(ValueError, match="is not defined"):
        stats.pass_at_k(samples, 1, k)


@pytest.mark.parametrize(
    ("at_most", "n", "p"),
    [(-1, 4, 0.0), (0, 4, 1 / 16), (1, 4, 5 / 16), (2, 4, 11 / 16), (3, 4, 15 / 16), (4, 4, 1.0), (9, 4, 1.0)],
)
def test_tosses_of_a_coin(at_most: int, n: int, p: float) -> None:
    assert stats.binomial_tail(at_most, n) == pytest.approx(p, abs=1e-12)


@given(st.integers(1, 60))
def test_tails_of_a_coin_are_sums_of_binomial_coefficients(n: int) -> None:
    for at_most in range(n):
        exact = sum(math.comb(n, heads) for heads in range(at_most + 1)) / 2**n
        assert stats.binomial_tail(at_most, n) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 30])
def test_student_against_its_density(freedom: int) -> None:
    """Simpson's rule over the density, from 0 to t."""
    scale = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
    for t in (0.3, 1.0, 2.5):
        steps = 2000
        density = [
            scale * (1 + (t * at / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for at in range(steps + 1)
        ]
        inner = density[0] + density[-1] + 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2])
        assert stats.t_two_sided(t, freedom) == pytest.approx(1 - 2 * inner * t / steps / 3, rel=1e-9)


def test_an_interval_of_averages_by_hand() -> None:
    """Wilson's formula with the effective number of problems, mean · (1 − mean) / variance of the mean."""
    low, high, method = stats.mean_interval({0.0: 3, 0.5: 4, 1.0: 3})
    variance = (3 * 0.25 + 3 * 0.25) / 9
    effective = 10 * 0.25 / variance
    assert (low, high) == pytest.approx(stats.wilson_interval(0.5, effective, stats.t_critical(9)), abs=1e-12)
    assert method == "cluster"


def test_a_single_problem_says_next_to_nothing() -> None:
    assert stats.mean_interval({0.5: 1}) == (0.0, 1.0, "cluster")
    assert stats.mean_interval({7.0: 1}) == (-math.inf, math.inf, "cluster")
    assert stats.mean_interval({-0.5: 1}) == (-math.inf, math.inf, "cluster")
    assert stats.mean_interval({1: 1}).method == "wilson"


def test_mean_and_deviation_of_two() -> None:
    assert stats.mean_std([1.0, 2.0]) == pytest.approx((1.5, math.sqrt(0.5)))
