# SPDX-License-Identifier: Apache-2.0
"""HotpotQA: answers, supporting facts, both; and the same where the answer can be told by its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores

_NAMES = (
    "answer_em",
    "answer_f1",
    "sp_em",
    "sp_f1",
    "joint_em",
    "joint_f1",
    "is_correct",
    "is_correct_strict",
)
_FILTERED = "filtered_"


class HotpotMetric(ScoreMetric):
    """All scores that the grader wrote; modes `filtered_…` leave out records with `reliable` false."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(_NAMES, bool | int | float | None),
        "reliable": bool | None,
    }
    headline = ("answer_em",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", *_NAMES)

    def __init__(self, *, filtered: bool = True) -> None:
        super().__init__(compute_no_answer=False)
        self._reliable = HotpotMetric(filtered=False) if filtered else None

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        if self._reliable is not None and predictions[0].get("reliable"):
            self._reliable.update(predictions)

    def scores(self, record: Row) -> Scores:
        return {name: record[name] for name in _NAMES if name in record}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {name: 0.0 for name in _NAMES if name in prediction}
        return prediction | wrong | {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}

    def metrics(self) -> dict[str, Row]:
        return super().metrics() | self._with_prefix("metrics")

    def numbers(self) -> dict[str, dict[str, Number]]:
        return super().numbers() | self._with_prefix("numbers")

    def shown(self) -> tuple[str, ...]:
        modes = super().shown()
        reliable = self._reliable is not None and self._reliable._problems
        if reliable:
            return (*modes, *(f"{_FILTERED}{mode}" for mode in modes))
        return modes

    def _with_prefix(self, what: str) -> dict[str, Any]:
        if self._reliable is None or not self._reliable._problems:
            return {}
        return {f"{_FILTERED}{mode}": numbers for mode, numbers in getattr(self._reliable, what)().items()}
