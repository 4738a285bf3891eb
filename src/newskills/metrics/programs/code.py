# SPDX-License-Identifier: Apache-2.0
"""Programs that pass all tests or not, whatever their grader calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores
from newskills.metrics.programs.base import SUSPICIOUS, ProgramMetric


class CodeMetric(ProgramMetric):
    """`accuracy`: the first of `graded_list`, else `status` (pass), `passed` or `is_correct`."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "graded_list": Any,
        "status": Any,
        "passed": bool | int | float | None,
        "is_correct": bool | int | float | None,
    }
    headline = ("accuracy",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "accuracy", NO_ANSWER, SUSPICIOUS)

    def scores(self, record: Row) -> Scores:
        graded = record.get("graded_list")
        if isinstance(graded, list) and graded:
            return {"accuracy": graded[0]}
        if isinstance(record.get("status"), str):
            return {"accuracy": record["status"] == "pass"}
        for field in ("passed", "is_correct"):
            if field in record:
                return {"accuracy": record[field]}
        return {}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"graded_list": [False], "status": "fail", "passed": False, "is_correct": False}
        kept = {field: value for field, value in wrong.items() if field in prediction} or {"is_correct": False}
        return prediction | kept | {"outcome": NO_ANSWER, "outcome_cause": "truncation"}


class BirdMetric(ScoreMetric):
    """`total_acc`, and the same for each difficulty that rows name (BIRD, arXiv:2305.03111)."""

    score_fields: ClassVar[Mapping[str, Any]] = {"res": bool | int | float | None, "difficulty": str | None}
    headline = ("total_acc",)
    columns = (
        *(
            "num_entries",
            "avg_tokens",
            "gen_seconds",
            "total_acc",
            "simple_acc",
            "moderate_acc",
            "challenging_acc",
        ),
        NO_ANSWER,
    )

    def scores(self, record: Row) -> Scores:
        if "res" not in record:
            return {}
        scores = {"total_acc": record["res"]}
        if difficulty := record.get("difficulty"):
            scores[f"{difficulty}_acc"] = record["res"]
        return scores

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"res": 0, "outcome": NO_ANSWER, "outcome_cause": "truncation"}
