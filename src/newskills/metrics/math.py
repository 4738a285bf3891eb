# SPDX-License-Identifier: Apache-2.0
"""Answers compared with a gold answer by rules, by a judge, or by both (mathematics, multiple choice)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.base import NO_ANSWER, ScoreMetric, Scores
from newskills.base.judgement import parse_judgement


class MathMetric(ScoreMetric):
    """`symbolic_correct` (rules), `judge_correct` (the judge's text), and with both `both_correct`, `any_correct`.

    A judge's text without a verdict, and rules that came to none (null), leave that score unscored.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"symbolic_correct": bool | int | float | None, "judgement": Any}
    headline = ("judge_correct", "symbolic_correct")
    columns = ("num_entries", "avg_tokens", "gen_seconds", "judge_correct", "symbolic_correct", NO_ANSWER)

    def scores(self, record: Row) -> Scores:
        if "judgement" not in record:
            return {"symbolic_correct": record["symbolic_correct"]} if "symbolic_correct" in record else {}
        judged = parse_judgement(record["judgement"])
        if "symbolic_correct" not in record:
            return {"judge_correct": judged}
        ruled = record["symbolic_correct"]
        return {
            "symbolic_correct": ruled,
            "judge_correct": judged,
            "both_correct": _both(ruled, judged),
            "any_correct": _any(ruled, judged),
        }

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}
        if "symbolic_correct" in prediction:
            wrong["symbolic_correct"] = False
        if "judgement" in prediction:
            wrong["judgement"] = "Judgement: No"
        return prediction | wrong


def _both(a: float | None, b: float | None) -> float | None:
    """Decided by one 0 alone."""
    known = [score for score in (a, b) if score is not None]
    if len(known) == 2 or 0 in known:
        return min(known)
    return None


def _any(a: float | None, b: float | None) -> float | None:
    """Decided by one 1 alone."""
    known = [score for score in (a, b) if score is not None]
    if len(known) == 2 or 1 in known:
        return max(known)
    return None
