# SPDX-License-Identifier: Apache-2.0
"""Problems of one sample are counted on a shorter way: it must lead to the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.records import Row
from newskills.metrics.counting.base import ScoreMetric, Scores

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
        "generation_start_time": st.floats(1e9, 2e9),
        "generation_end_time": st.floats(1e9, 2e9),
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
