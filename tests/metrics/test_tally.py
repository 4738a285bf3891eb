# SPDX-License-Identifier: Apache-2.0
"""Counts of one score, beside those that are computed from the samples themselves."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.metrics.counting.tally import AVERAGE_MODE, Tally, mean_of

SCORES = st.sampled_from([None, 0, 1, 0.25, 0.75])


def tally_of(problems: list[list[float | None]]) -> Tally:
    tally = Tally(len(problems[0]))
    for scores in problems:
        tally.add(scores, {})
    return tally


def test_variation_needs_two_runs_with_a_score() -> None:
    assert tally_of([[1, None], [0, None]]).statistics() == {}
    assert tally_of([[None, None]]).statistics() == {}
    found = tally_of([[1, 0], [1, None]]).statistics()
    assert list(found) == [2]
    assert found[2] == {
        "avg": pytest.approx(0.75),
        "std_dev_across_runs": pytest.approx(math.sqrt(0.5)),
        "avg_sample_std_dev": pytest.approx(math.sqrt(0.5)),
        "std_err_across_runs": pytest.approx(0.5),
    }


def test_variation_within_problems_needs_one_with_two_scores() -> None:
    """Two runs have scores, but of different problems."""
    assert tally_of([[1, None], [None, 0]]).statistics() == {}


def test_variation_may_begin_at_a_later_run() -> None:
    assert list(tally_of([[1, None, 0]]).statistics()) == [3]


@given(
    st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(SCORES, min_size=n, max_size=n), min_size=1, max_size=6))
)
def test_statistics_are_those_of_the_samples(problems: list[list[float | None]]) -> None:
    samples = len(problems[0])
    found = tally_of(problems).statistics()
    for k in range(2, samples + 1):
        runs = [[problem[run] for problem in problems if problem[run] is not None] for run in range(k)]
        means = [statistics.fmean(scores) for scores in runs if scores]
        first = [[score for score in problem[:k] if score is not None] for problem in problems]
        spreads = [statistics.stdev(scores) for scores in first if len(scores) > 1]
        if len(means) < 2 or not spreads:
            assert k not in found
            continue
        assert found[k]["avg"] == pytest.approx(statistics.fmean(statistics.fmean(s) for s in first if s))
        assert found[k]["std_dev_across_runs"] == pytest.approx(statistics.stdev(means))
        assert found[k]["std_err_across_runs"] == pytest.approx(statistics.stdev(means) / math.sqrt(len(means)))
        assert found[k]["avg_sample_std_dev"] == pytest.approx(statistics.fmean(spreads), abs=1e-7)


@given(st.lists(SCORES, min_size=1, max_size=8))
def test_problems_of_one_sample_are_counted_alike(scores: list[float | None]) -> None:
    one, alike = Tally(1), Tally(1)
    for score in scores:
        one.add([score], {"pass": [] if score is None else [score]})
    for score in dict.fromkeys(scores):
        alike.add_alike(score, {"pass": [] if score is None else [score]}, scores.count(score))
    assert one.scored == alike.scored == len([score for score in scores if score is not None])
    assert one.values(AVERAGE_MODE) == alike.values(AVERAGE_MODE)
    assert one.values("pass") == alike.values("pass")
    assert one.families() == alike.families() == ["pass"]


def test_means_over_problems() -> None:
    assert mean_of({0.5: 2, 1.0: 2}) == 0.75
    assert mean_of({0.25: 3}) == 0.25
