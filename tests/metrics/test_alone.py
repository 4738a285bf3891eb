# SPDX-License-Identifier: Apache-2.0
"""Problems of one sample are counted on a shorter way: it must lead to the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.records import Row
from newskills.metrics.counting.base import ScoreMetric, Scores

TIMES = st.floats(1e9, 2e9) | st.integers(-9, 9)
RECORDS = st.fixed_dictionaries(
    {"score": st.sampled_from([None, 0, 1, True, 0.25, 0.75])},
    optional={
        "predicted_answer": st.sampled_from([None, "4", "5"]),
        "outcome": st.sampled_from(["correct", "wrong", "no_answer", "unscored"]),
        "outcome_cause": st.sampled_from(["judge", "model"]),
        "error": st.just("Timeout"),
        "finish_reason": st.sampled_from(["stop", "length"]),
        "num_generated_tokens": st.integers(0, 9),
        "num_reasoning_tokens": st.integers(0, 9),
        "generation_start_time": TIMES,
        "generation_end_time": TIMES,
    },
)


class Plain(ScoreMetric):
    score_fields: ClassVar[Mapping[str, Any]] = {"score": Any}
    headline = ("first",)

    def scores(self, record: Row) -> Scores:
        return {"first": record["score"], "second": None if record["score"] is None else 1 - record["score"]}

    def incorrect(self, prediction: Row) -> Row:
        return prediction


@settings(max_examples=100)
@given(records=st.lists(RECORDS, min_size=1, max_size=12))
def test_one_sample_counts_as_the_first_of_two_alike(records: list[Row]) -> None:
    """Numbers over one sample, and numbers at k = 1 over two samples of which the second is the first again."""
    one, two = Plain(), Plain()
    for record in records:
        one.update([record])
        two.update([record, record])
    for name, number in one.numbers()["pass@1"].items():
        pair = two.numbers()["pass@1"][name]
        assert (number.value, number.low, number.high, number.n) == (pair.value, pair.low, pair.high, pair.n)
        assert 2 * number.unscored == pair.unscored
    mine, theirs = one.metrics()["pass@1"], two.metrics()["pass@1"]
    for name in ("num_entries", "avg_tokens", "gen_seconds", "unscored"):
        assert mine.get(name) == theirs.get(name)
    ledger, double = one.ledger(), two.ledger()
    for name in ("correct", "wrong", "no_answer", "unscored"):
        assert 2 * getattr(ledger, name) == getattr(double, name)
    assert list(one.numbers()["pass@1"]) == list(two.numbers()["pass@1"])


@settings(max_examples=100)
@given(records=st.lists(RECORDS, min_size=1, max_size=12), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_parts_that_are_counted_apart_make_the_whole(records: list[Row], cuts: list[int]) -> None:
    whole, together = Plain(), Plain()
    for record in records:
        whole.update([record])
    ends = [0, *sorted(cuts), len(records)]
    for begin, end in itertools.pairwise(ends):
        part = Plain()
        for record in records[begin:end]:
            part.update([record])
        counts = part.part_counts()
        assert counts is not None
        assert counts.problems == len(records[begin:end])
        together.absorb(counts)
    assert together.metrics() == whole.metrics()
    assert together.numbers() == whole.numbers()
    assert together.ledger() == whole.ledger()
    assert together.shown() == whole.shown()


def test_what_cannot_be_counted_apart() -> None:
    """Several samples of a problem, and rewards: their votes need the samples."""
    for samples in ([{"score": 1}, {"score": 0}], [{"score": 1, "reward_model_score": 0.5}]):
        metric = Plain()
        metric.update(samples)
        assert metric.part_counts() is None
    assert not Plain().is_divisible, "it does not say so"


def test_answers_vote_by_their_text() -> None:
    """5 is "5", and neither None nor an answer that the outcome denies is one."""
    metric = Plain()
    metric.update(
        [
            {"score": 0, "predicted_answer": 5},
            {"score": 1, "predicted_answer": "7"},
            {"score": 0, "predicted_answer": "5"},
            {"score": 1, "predicted_answer": "7", "outcome": "no_answer"},
            {"score": 1, "predicted_answer": None},
        ]
    )
    modes = metric.metrics()
    values = [modes[f"majority@{k}"]["first"] for k in range(2, 6)]
    assert values == [50.0, 0.0, 0.0, 0.0]
    assert modes["pass@1[avg-of-5]"]["no_answer"] == 40.0
