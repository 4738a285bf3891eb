# SPDX-License-Identifier: Apache-2.0
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base import paired, stats

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)
P_VALUES = st.lists(st.floats(0, 1), max_size=12)


def singles(scores: Iterable[float]) -> list[list[float]]:
    return [[float(score)] for score in scores]


@pytest.mark.parametrize(
    ("first", "second", "p"), [(0, 5, 0.0625), (5, 0, 0.0625), (3, 3, 1.0), (0, 0, 1.0), (2, 10, 0.0385742)]
)
def test_mcnemar_is_exact(first: int, second: int, p: float) -> None:
    assert paired.mcnemar(first, second) == pytest.approx(p, abs=1e-7)


def test_mcnemar_of_many_pairs_goes_on_from_that_of_few() -> None:
    assert paired.mcnemar(230, 270) == pytest.approx(2 * stats.binomial_tail(230, 500), rel=1e-9)
    assert paired.mcnemar(230, 270) < paired.mcnemar(231, 270) < paired.mcnemar(231, 269)


@pytest.mark.parametrize(("total", "surplus"), [(0, 6), (5, 6), (6, 6), (10, 8), (100, 22)])
def test_the_smallest_discordance_is_the_first_that_is_significant(total: int, surplus: int) -> None:
    assert paired.smallest_discordance(total) == surplus
    if total >= surplus:
        assert paired.mcnemar((total - surplus) // 2, (total + surplus) // 2) < 0.05
        assert paired.mcnemar((total - surplus) // 2 + 1, (total + surplus) // 2 - 1) >= 0.05


def test_single_answers_are_compared_by_mcnemar() -> None:
    before = [[0]] * 6 + [[1]] * 4 + [[1]]
    after = [[1]] * 8 + [[0]] * 2 + [[]]
    result = paired.paired_difference(before, after)
    assert (result.n, result.method) == (10, "mcnemar")
    assert result.difference == pytest.approx(0.4)
    assert result.p_value == pytest.approx(paired.mcnemar(6, 2))
    assert result.low < 0.4 < result.high
    assert result.smallest_significant == pytest.approx(0.8)


def test_repeated_answers_are_compared_by_problem() -> None:
    after, before = [[1, 1], [1, 0], [1, 1], [0, 0]], [[0, 1], [0, 0], [1, 0], [0, 0]]
    result = paired.paired_difference(before, after)
    assert result.method == "paired t"
    assert result.difference == pytest.approx(0.375)
    assert result.p_value == pytest.approx(0.0576, abs=2e-4)
    assert paired.paired_difference(after, after).p_value == 1.0
    assert paired.paired_difference([[0.25, 0.5], [0.0]], [[0.75, 1.0], [0.5]]).p_value == 0.5


def test_a_comparison_needs_two_problems() -> None:
    with pytest.raises(ValueError, match="two common problems"):
        paired.paired_difference([[1], []], [[1], [0]])


def test_samples_of_a_problem_are_no_new_evidence() -> None:
    """Sixteen copies of each answer say what one says."""
    draw = random.Random(4)
    before, after = ([float(draw.random() < p) for _ in range(300)] for p in (0.5, 0.6))
    once = paired.paired_difference(singles(before), singles(after))
    copies = paired.paired_difference([[b] * 16 for b in before], [[a] * 16 for a in after])
    assert copies.high - copies.low == pytest.approx(once.high - once.low, rel=0.05)


def test_scores_that_are_no_verdicts_have_a_bootstrap_interval_near_that_of_student() -> None:
    draw = random.Random(7)
    before = [[draw.random()] for _ in range(200)]
    after = [[a[0] + draw.gauss(0.03, 0.1)] for a in before]
    result = paired.paired_difference(before, after)
    half = 1.972 * result.standard_error
    assert (result.low, result.high) == pytest.approx(
        (result.difference - half, result.difference + half), abs=0.003
    )
    assert result.minimum_detectable > result.smallest_significant


@given(PAIRS)
def test_a_comparison_turned_round_says_the_same(pairs: list[tuple[bool, bool]]) -> None:
    before, after = (singles(side) for side in zip(*pairs, strict=True))
    there, back = paired.paired_difference(before, after), paired.paired_difference(after, before)
    assert there == paired.paired_difference(before, after)
    assert there.difference == pytest.approx(-back.difference)
    assert there.p_value == back.p_value
    assert there.low <= there.difference <= there.high
    assert there.low < there.high
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=1e-12)


@given(P_VALUES)
def test_holm_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    adjusted = paired.holm(p_values)
    for p, a in zip(p_values, adjusted, strict=True):
        assert p <= a <= 1
        assert a <= min(1.0, len(p_values) * p)
    for i, p in enumerate(p_values):
        for j, q in enumerate(p_values):
            assert p > q or adjusted[i] <= adjusted[j]


@pytest.mark.parametrize(("n", "p"), [(20, 0.1), (200, 0.9), (1000, 0.3), (100_000, 0.02)])
def test_binomial_draws_have_mean_and_variance_of_the_distribution(n: int, p: float) -> None:
    draw = random.Random(11)
    drawn = [paired.binomial(draw, n, p) for _ in range(20_000)]
    mean = sum(drawn) / len(drawn)
    variance = sum((count - mean) ** 2 for count in drawn) / len(drawn)
    assert mean == pytest.approx(n * p, abs=4 * (n * p * (1 - p) / len(drawn)) ** 0.5)
    assert variance == pytest.approx(n * p * (1 - p), rel=0.05)
