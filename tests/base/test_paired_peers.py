# SPDX-License-Identifier: Apache-2.0
"""The figures of a comparison against those of scipy and statsmodels."""

import random

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower, TTestPower

from newskills.base import paired, power, stats


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (3, 9), (40, 61), (250, 251), (260, 300), (9000, 9400)])
def test_mcnemar_is_that_of_statsmodels(lost: int, gained: int) -> None:
    peer = statsmodels_mcnemar([[5, lost], [gained, 7]], exact=True)
    assert paired.mcnemar(lost, gained) == pytest.approx(min(1.0, peer.pvalue), rel=1e-9)


@pytest.mark.parametrize("n", [1, 7, 100, 5001])
def test_the_tail_of_fair_tosses_is_that_of_scipy(n: int) -> None:
    for at_most in {0, n // 3, n // 2, n - 1}:
        assert stats.binomial_tail(at_most, n) == pytest.approx(
            scipy.stats.binom.cdf(at_most, n, 0.5), rel=1e-9, abs=1e-300
        )


def test_holm_is_that_of_statsmodels() -> None:
    draw = random.Random(2)
    for size in (1, 2, 5, 40):
        p_values = [draw.random() ** 3 for _ in range(size)]
        assert paired.holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


def test_the_p_value_over_problems_is_that_of_a_paired_t_test() -> None:
    draw = random.Random(5)
    before = [[float(draw.random() < 0.5) for _ in range(8)] for _ in range(120)]
    after = [[float(draw.random() < 0.55) for _ in range(8)] for _ in range(120)]
    peer = scipy.stats.ttest_rel([np.mean(a) for a in after], [np.mean(b) for b in before])
    assert paired.paired_difference(before, after).p_value == pytest.approx(peer.pvalue, rel=1e-9)


def test_the_interval_is_near_the_bootstrap_of_scipy() -> None:
    draw = random.Random(6)
    differences = [draw.expovariate(1) - 0.8 for _ in range(60)]
    result = paired.paired_difference([[0.0]] * 60, [[d] for d in differences])
    peer = scipy.stats.bootstrap(
        (differences,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert result.low == pytest.approx(peer.low, abs=0.06)
    assert result.high == pytest.approx(peer.high, abs=0.06)
    assert result.high - result.low > peer.high - peer.low


def test_binomial_draws_are_those_of_the_distribution() -> None:
    draw = random.Random(9)
    for n, p in ((40, 0.1), (400, 0.45)):
        drawn = np.bincount([paired.binomial(draw, n, p) for _ in range(20_000)], minlength=n + 1)
        expected = scipy.stats.binom.pmf(np.arange(n + 1), n, p) * 20_000
        kept = expected > 10
        assert (
            scipy.stats.chisquare(drawn[kept], expected[kept] * drawn[kept].sum() / expected[kept].sum()).pvalue
            > 1e-4
        )


def test_the_problems_needed_are_those_of_statsmodels() -> None:
    for variance, difference in ((0.3, 0.02), (0.24, 0.05)):
        on_scores = power.DifferenceVariance(variance, 0.0, binary=False)
        peer = TTestPower().solve_power(difference / variance**0.5, power=0.8, alpha=0.05)
        assert power.problems_needed(on_scores, 1, difference) == pytest.approx(peer, abs=3)
        peer = NormalIndPower().solve_power(difference / variance**0.5, power=0.8, alpha=0.05)
        apart = power.DifferenceVariance(2 * variance, 0.0, paired=False)
        assert power.problems_needed(apart, 1, difference) == pytest.approx(peer, abs=3)
