# SPDX-License-Identifier: Apache-2.0
"""Any grader that says passed or failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores


class GenericMetric(ScoreMetric):
    """`accuracy`: `is_correct`, else `symbolic_correct` (true, false, or partial credit 0–1), else the outcome."""

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("is_correct", "symbolic_correct"), bool | int | float | None
    )
    headline = ("accuracy",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "accuracy", NO_ANSWER)

    def scores(self, record: Row) -> Scores:
        for field in self.score_fields:
            if field in record:
                return {"accuracy": record[field]}
        outcome = record.get("outcome")
        return {"accuracy": outcome == "correct"} if outcome in ("correct", "wrong", NO_ANSWER) else {}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {field: False for field in self.score_fields if field in prediction}
        return prediction | wrong | {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}
