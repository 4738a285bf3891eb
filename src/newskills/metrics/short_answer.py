# SPDX-License-Identifier: Apache-2.0
"""Short answers: exact match and F1 of words, ANLS, or whether replies contain a right answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores

_NAMES = ("em", "f1", "anls", "contained")


class ShortAnswerMetric(ScoreMetric):
    """`em` and `f1`, `anls`, or `contained`: whichever the grader wrote."""

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(_NAMES, bool | int | float | None)
    headline = ("em", "anls", "contained")
    columns = ("num_entries", "avg_tokens", "gen_seconds", *_NAMES, NO_ANSWER)

    def scores(self, record: Row) -> Scores:
        return {name: record[name] for name in _NAMES if name in record}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {name: 0.0 for name in _NAMES if name in prediction}
        return prediction | wrong | {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}
