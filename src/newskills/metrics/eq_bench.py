# SPDX-License-Identifier: Apache-2.0
"""EQ-Bench: the mean over what could be read, and how much that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, Scores
from newskills.metrics.counting.kinds import KindMetric


class EqBenchMetric(KindMetric):
    """`eq_bench_score` (100 = as the authors, 0 = guessing) over replies with four numbers; `parseable`: their share.

    The authors take a score for void below 83 % parseable.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"eq_score": int | float | None, "parseable": bool | None}
    headline = ("parseable",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "eq_bench_score", "parseable")

    def scores(self, record: Row) -> Scores:
        score = record.get("eq_score")
        scores = {} if score is None else {"eq_bench_score": score / 10}
        return {**scores, "parseable": record.get("parseable")}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"eq_score": None, "parseable": False, self.answer_key: None, "outcome": NO_ANSWER}
        return prediction | wrong | {"outcome_cause": "truncation"}
