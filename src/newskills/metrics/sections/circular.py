# SPDX-License-Identifier: Apache-2.0
"""A choice question counts when it is answered in every order of its options (MMBench: arXiv:2307.06281, §4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import NO_ANSWER, Scores, is_lost, percent
from newskills.metrics.counting.seeds import SeedMetric

CIRCULAR = "circular_accuracy"


class CircularMetric(SeedMetric):
    """`circular_accuracy`: questions (`question_id`) of which every order is right; `accuracy` over all orders.

    A question of which an order could not be scored is left out, unless another order is wrong.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"symbolic_correct": bool | int | float | None, "question_id": Any}
    headline = ("accuracy",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", CIRCULAR, "accuracy", NO_ANSWER)

    def __init__(self) -> None:
        super().__init__()
        self._questions: list[dict[str, list[float | None]]] = []

    def scores(self, record: Row) -> Scores:
        return {"accuracy": record.get("symbolic_correct")}

    def update(self, predictions: Sequence[Row]) -> None:
        """Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        self._questions += [{} for _ in predictions[len(self._questions) :]]
        for seed, record in enumerate(predictions):
            value = None if is_lost(record) else record.get("symbolic_correct")
            self._questions[seed].setdefault(str(record.get("question_id")), []).append(value)

    def figures(self) -> Iterable[str]:
        return (CIRCULAR,)

    def figure(self, name: str, seed: int) -> Number | None:
        values = [_together(orders) for orders in self._questions[seed].values()]
        counted = Counter(value for value in values if value is not None)
        return percent(counted, values.count(None)) if counted else None

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"symbolic_correct": False, self.answer_key: None, "outcome": NO_ANSWER}
        return prediction | wrong | {"outcome_cause": "truncation"}


def _together(orders: Sequence[float | None]) -> float | None:
    if any(value == 0 for value in orders):
        return 0.0
    return None if None in orders else 1.0
