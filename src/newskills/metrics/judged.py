# SPDX-License-Identifier: Apache-2.0
"""Answers that only a judge decides on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.judgement import parse_judgement
from newskills.base.records import Row
from newskills.metrics.counting.base import ScoreMetric, Scores


class JudgedMetric(ScoreMetric):
    """`judge_correct`: the verdict in the judge's text; a text without one leaves the sample unscored.

    The answer is the whole reply, so that no reply counts as one without an answer.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"judgement": Any}
    headline = ("judge_correct",)
    columns: tuple[str, ...] = ("num_entries", "avg_tokens", "gen_seconds", "judge_correct")

    def __init__(self, *, compute_no_answer: bool = False, answer_key: str = "generation") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)

    def scores(self, record: Row) -> Scores:
        if "judgement" in record:
            return {"judge_correct": parse_judgement(record["judgement"])}
        return {}

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"judgement": "Judgement: No", "outcome": "wrong", "outcome_cause": "truncation"}
