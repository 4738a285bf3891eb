# SPDX-License-Identifier: Apache-2.0
"""Long answers, claim by claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import ScoreMetric, Scores

_NAMES = ("f1_at_64", "f1_at_178", "precision")


class LongFactMetric(ScoreMetric):
    """`f1_at_64`, `f1_at_178`, `precision`: means of the answers' own."""

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(_NAMES, float | int | None)
    headline = ("f1_at_64",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", *_NAMES)

    def __init__(self, *, compute_no_answer: bool = False, answer_key: str = "generation") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)

    def scores(self, record: Row) -> Scores:
        return {name: record[name] for name in _NAMES if name in record}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = dict.fromkeys(_NAMES, 0.0)
        return prediction | wrong | {"outcome": "wrong", "outcome_cause": "truncation"}
