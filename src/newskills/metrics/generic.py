# SPDX-License-Identifier: Apache-2.0
"""Any grader that says passed or failed; the score of LiveBench's leaderboard."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.base.stats import Z95
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores


class GenericMetric(ScoreMetric):
    """`accuracy`: `is_correct`, else `symbolic_correct` (true, false, or partial credit 0–1), else the outcome."""

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("is_correct", "symbolic_correct"), bool | int | float | None
    )
    headline = ("accuracy",)
    columns: tuple[str, ...] = ("num_entries", "avg_tokens", "gen_seconds", "accuracy", NO_ANSWER)
    divisible = True

    def scores(self, record: Row) -> Scores:
        for field in self.score_fields:
            if field in record:
                return {"accuracy": record[field]}
        outcome = record.get("outcome")
        if outcome in ("correct", "wrong", NO_ANSWER):
            return {"accuracy": outcome == "correct"}
        return {}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {field: False for field in self.score_fields if field in prediction}
        return prediction | wrong | {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}


class LiveBenchMetric(GenericMetric):
    """`accuracy`: each task of a category weighs the same, and each category; `by_question`: each question does.

    Tasks and categories are the fields `task` and `category` of a record. The interval is that of a stratified mean
    with the tasks as strata (Cochran 1977, §5.4).
    """

    score_fields: ClassVar[Mapping[str, Any]] = {
        **GenericMetric.score_fields,
        "task": str | None,
        "category": str | None,
    }
    columns: tuple[str, ...] = ("num_entries", "avg_tokens", "gen_seconds", "accuracy", "by_question", NO_ANSWER)

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self._by_task: dict[tuple[str, str], GenericMetric] = {}

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        place = str(predictions[0].get("category")), str(predictions[0].get("task"))
        if place not in self._by_task:
            self._by_task[place] = GenericMetric(compute_no_answer=False, answer_key=self.answer_key)
        self._by_task[place].update(predictions)

    def numbers(self) -> dict[str, dict[str, Number]]:
        tasks = {place: metric.numbers() for place, metric in self._by_task.items()}
        numbers_by_mode: dict[str, dict[str, Number]] = {}
        for mode, numbers in super().numbers().items():
            strata = {
                place: modes[mode]["accuracy"]
                for place, modes in tasks.items()
                if "accuracy" in modes.get(mode, {}) and modes[mode]["accuracy"].n
            }
            if "accuracy" in numbers and strata:
                numbers = {**numbers, "accuracy": _leaderboard_mean(strata), "by_question": numbers["accuracy"]}
            numbers_by_mode[mode] = numbers
        return numbers_by_mode


def _leaderboard_mean(tasks: Mapping[tuple[str, str], Number]) -> Number:
    """Average numbers by (category, task), so that categories weigh the same."""
    categories = [category for category, _ in tasks]
    weights = {place: 1 / (categories.count(place[0]) * len(set(categories))) for place in tasks}
    value = math.fsum(weights[place] * number.value for place, number in tasks.items())
    errors = [weights[place] * (number.high - number.low) / (2 * Z95) for place, number in tasks.items()]
    half = Z95 * math.sqrt(math.fsum(error**2 for error in errors))
    return Number(
        value=value,
        low=max(0.0, value - half),
        high=min(100.0, value + half),
        n=sum(number.n for number in tasks.values()),
        unscored=sum(number.unscored for number in tasks.values()),
        method="stratified",
    )
