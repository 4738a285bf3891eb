# SPDX-License-Identifier: Apache-2.0
"""Points of contests: of each subtask the best that any answer to its problem has."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores, is_lost


class ContestMetric(ScoreMetric):
    """`accuracy` (all points), and over all answers to a problem what `summary` says."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "name": Any,
        "is_correct": Any,
        "test_case_results": Any,
        "compiled": Any,
        "score": int | float | None,
    }
    headline = ("accuracy",)
    totals: ClassVar[tuple[str, ...]] = ("total_score",)

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self.columns = ("num_entries", "avg_tokens", "gen_seconds", *self.totals, "accuracy", NO_ANSWER)
        self._answers: dict[str, list[Row]] = defaultdict(list)

    def scores(self, record: Row) -> Scores:
        if "is_correct" not in record:
            return {}
        return {"accuracy": record["is_correct"]}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"is_correct": False, "test_case_results": {}, "score": 0.0, "outcome": NO_ANSWER}
        return prediction | wrong | {"outcome_cause": "truncation"}

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        for record in predictions:
            if not is_lost(record):
                self._answers[str(record.get("name") or record.get("id"))].append(dict(record))

    def metrics(self) -> dict[str, Row]:
        modes = super().metrics()
        last = f"pass@{self._samples}"
        if last in modes:
            modes[last] |= self.summary()
        return modes

    def shown(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*super().shown(), f"pass@{self._samples}"]))

    def summary(self) -> Row:
        best = {name: _best_by_subtask(answers) for name, answers in self._answers.items()}
        return {"total_score": _total_points(best), "per_problem_subtask_scores": best}


class ICPCMetric(ContestMetric):
    """`solved` problems, and for each whether some answer passed the samples, and all tests."""

    totals = ("solved", "average_number_of_runs")

    def summary(self) -> Row:
        problems = {
            name: {
                f"{kind}_correct": any(_passes_subtask(answer, kind) for answer in answers)
                for kind in ("sample", "test")
            }
            for name, answers in self._answers.items()
        }
        runs = sum(map(len, self._answers.values())) / max(1, len(self._answers))
        solved = sum(
            any(answer.get("is_correct") is True for answer in answers) for answers in self._answers.values()
        )
        return {"solved": solved, "average_number_of_runs": runs, "per_problem": problems}


class CCCMetric(ContestMetric):
    """`average_score` and `best_score` (points), and the share of answers that compile."""

    totals = ("average_score", "best_score", "compile_success_rate")

    def summary(self) -> Row:
        answers = [answer for answers_of_problem in self._answers.values() for answer in answers_of_problem]
        means = [
            math.fsum(answer.get("score") or 0 for answer in answers_of_problem) / len(answers_of_problem)
            for answers_of_problem in self._answers.values()
        ]
        best = {name: _best_by_subtask(answers_of_problem) for name, answers_of_problem in self._answers.items()}
        return {
            "average_score": math.fsum(means),
            "best_score": _total_points(best),
            "compile_success_rate": 100 * sum(a.get("compiled") is True for a in answers) / max(1, len(answers)),
            "per_problem_subtask_scores": best,
        }


def _total_points(best: Mapping[str, Mapping[str, float]]) -> float:
    return math.fsum(points for subtasks in best.values() for points in subtasks.values())


def _best_by_subtask(answers: Sequence[Row]) -> dict[str, float]:
    best: dict[str, float] = {}
    for answer in answers:
        for name, subtask in (answer.get("test_case_results") or {}).items():
            best[name] = max(best.get(name, 0.0), float(subtask["score"]))
    return best


def _passes_subtask(answer: Row, subtask: str) -> bool:
    result = (answer.get("test_case_results") or {}).get(subtask)
    return result is not None and all(test["score"] >= 1 for test in result["outputs"])
