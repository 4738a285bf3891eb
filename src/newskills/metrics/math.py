# SPDX-License-Identifier: Apache-2.0
"""Answers compared with a gold answer by rules, by a judge, or by both (mathematics, multiple choice)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.judgement import parse_judgement
from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores


class MathMetric(ScoreMetric):
    """`symbolic_correct` (rules), `judge_correct` (the judge's text), and with both `both_correct`, `any_correct`.

    A judge's text without a verdict, and rules that came to none (null), leave that score unscored. Of all judged
    samples, in percent: `judge_invalid` have no verdict; of the others, judge and rules agree on `judge_agreement`.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"symbolic_correct": bool | int | float | None, "judgement": Any}
    headline = ("judge_correct", "symbolic_correct")
    columns: tuple[str, ...] = (
        "num_entries",
        "avg_tokens",
        "gen_seconds",
        "judge_correct",
        "symbolic_correct",
        NO_ANSWER,
    )
    divisible = True

    def metrics(self) -> dict[str, Row]:
        about: Row = {}
        if num_judged := self._beside["asked"]:
            about["judge_invalid"] = 100.0 * self._beside["invalid"] / num_judged
        if both := self._beside["both"]:
            about["judge_agreement"] = 100.0 * self._beside["agreed"] / both
        return {mode: row | about for mode, row in super().metrics().items()}

    def scores(self, record: Row) -> Scores:
        if "judgement" not in record:
            if "symbolic_correct" in record:
                return {"symbolic_correct": record["symbolic_correct"]}
            return {}
        judged = parse_judgement(record["judgement"])
        self._beside["asked"] += 1
        self._beside["invalid"] += judged is None
        if "symbolic_correct" not in record:
            return {"judge_correct": judged}
        ruled = record["symbolic_correct"]
        if ruled is not None and judged is not None:
            self._beside["both"] += 1
            self._beside["agreed"] += ruled == judged
        return {
            "symbolic_correct": ruled,
            "judge_correct": judged,
            "both_correct": _smaller_score(ruled, judged),
            "any_correct": _larger_score(ruled, judged),
        }

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}
        if "symbolic_correct" in prediction:
            wrong["symbolic_correct"] = False
        if "judgement" in prediction:
            wrong["judgement"] = "Judgement: No"
        return prediction | wrong


def _smaller_score(a: float | None, b: float | None) -> float | None:
    """Return the smaller of two scores; a single 0 decides alone."""
    present = [score for score in (a, b) if score is not None]
    if len(present) == 2 or 0 in present:
        return min(present)
    return None


def _larger_score(a: float | None, b: float | None) -> float | None:
    """Return the larger of two scores; a single 1 decides alone."""
    present = [score for score in (a, b) if score is not None]
    if len(present) == 2 or 1 in present:
        return max(present)
    return None
