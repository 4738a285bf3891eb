# SPDX-License-Identifier: Apache-2.0
"""Scores of sums over samples, and their intervals by leaving out each sample in turn."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.records import Number
from newskills.metrics.counting.corpus import jackknife_number, mean_number, sections_jackknife

PAIRS = st.tuples(st.integers(0, 9), st.integers(1, 9))
Z95 = statistics.NormalDist().inv_cdf(0.975)


def ratio(sums: Sequence[float]) -> float:
    return 100 * sums[0] / sums[1]


@given(st.lists(PAIRS | st.none(), max_size=7))
def test_the_jackknife_against_its_definition(counts: list[tuple[int, int] | None]) -> None:
    rows = [row for row in counts if row is not None]
    number = jackknife_number(counts, ratio)
    if not rows:
        assert number is None
        return
    assert number is not None

    def without(left_out: int) -> float:
        kept = [row for at, row in enumerate(rows) if at != left_out]
        return 100 * sum(own for own, _ in kept) / sum(of for _, of in kept)

    assert number.value == pytest.approx(without(-1))
    assert (number.n, number.unscored, number.method) == (len(rows), len(counts) - len(rows), "jackknife")
    if len(rows) == 1:
        assert (number.low, number.high) == (-math.inf, math.inf)
        return
    others = [without(at) for at in range(len(rows))]
    half = Z95 * math.sqrt((len(rows) - 1) * statistics.pvariance(others))
    assert (number.low, number.high) == pytest.approx((number.value - half, number.value + half), abs=1e-6)


def test_rows_of_different_lengths_are_no_corpus() -> None:
    with pytest.raises(ValueError, match="zip"):
        jackknife_number([[1, 2], [1, 2, 3]], ratio)
    with pytest.raises(ValueError, match="zip"):
        sections_jackknife({("a", (1.0, 2.0)): 1, ("a", (1.0,)): 1}, mean_of_sections)


def mean_of_sections(sections: Mapping[str, Sequence[float]]) -> float | None:
    """Of what both sections have; of one alone nothing is known."""
    if len(sections) < 2:
        return None
    return statistics.fmean(ratio(sums) for sums in sections.values())


@given(st.lists(st.tuples(st.sampled_from("ab"), PAIRS), max_size=8))
def test_the_jackknife_over_sections_against_its_definition(samples: list[tuple[str, tuple[int, int]]]) -> None:
    def score(kept: list[tuple[str, tuple[int, int]]]) -> float | None:
        sums: dict[str, list[float]] = {}
        for section, (own, of) in kept:
            total = sums.setdefault(section, [0, 0])
            total[0], total[1] = total[0] + own, total[1] + of
        return mean_of_sections(sums)

    counts = Counter((section, (float(own), float(of))) for section, (own, of) in samples)
    number, value = sections_jackknife(counts, mean_of_sections), score(samples)
    if value is None:
        assert number is None
        return
    assert number is not None
    assert (number.value, number.n, number.method) == (pytest.approx(value), len(samples), "jackknife")
    rest = [score(samples[:at] + samples[at + 1 :]) for at in range(len(samples))]
    others = [other for other in rest if other is not None]
    if len(others) < 2:
        assert (number.low, number.high) == (-math.inf, math.inf)
        return
    half = Z95 * math.sqrt((len(others) - 1) * statistics.pvariance(others))
    assert (number.low, number.high) == pytest.approx((value - half, value + half), abs=1e-6)


def test_the_mean_of_scores_over_the_same_samples() -> None:
    numbers = [
        Number(value=1.0, low=0.0, high=3.0, n=4, unscored=1, method="jackknife"),
        Number(value=2.0, low=1.5, high=4.0, n=3, unscored=2, method="jackknife"),
    ]
    assert mean_number(numbers) == Number(value=1.5, low=0.75, high=3.5, n=4, unscored=3, method="jackknife")
