# SPDX-License-Identifier: Apache-2.0
"""ARC-AGI: the score of its leaderboard (Chollet et al. 2024, arXiv:2412.04604)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import is_lost, percent_number
from newskills.metrics.generic import GenericMetric


class ArcMetric(GenericMetric):
    """`arc_score`: mean over tasks of the share of test grids that any of k attempts has right; `accuracy`: all grids.

    The leaderboard allows two attempts: pass@2. `right_grids` of a record: whether each test grid is right.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {**GenericMetric.score_fields, "right_grids": list[bool] | None}
    columns: tuple[str, ...] = (
        "num_entries",
        "avg_tokens",
        "gen_seconds",
        "arc_score",
        *GenericMetric.columns[3:],
    )

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self._shares: list[list[float]] = []

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        solved: set[int] = set()
        shares: list[float] = []
        for record in predictions:
            if (right := record.get("right_grids")) and not is_lost(record):
                solved |= {place for place, grid in enumerate(right) if grid}
                shares.append(len(solved) / len(right))
        self._shares.append(shares)

    def incorrect(self, prediction: Row) -> Row:
        return super().incorrect(prediction) | {"right_grids": [False] * len(prediction.get("right_grids") or [0])}

    def numbers(self) -> dict[str, dict[str, Number]]:
        modes = super().numbers()
        for k in range(1, self._samples + 1):
            shares = Counter(task[k - 1] for task in self._shares if len(task) >= k)
            if shares:
                number = percent_number(shares, self._problems - shares.total(), self.interval)
                modes[f"pass@{k}"] = {"arc_score": number, **modes[f"pass@{k}"]}
        return modes
