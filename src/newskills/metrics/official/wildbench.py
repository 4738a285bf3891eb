# SPDX-License-Identifier: Apache-2.0
"""WB-Score (Lin et al. 2024, arXiv:2406.04770): marks from 1 to 10, stretched so that 5, barely acceptable, is 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import Scores, is_lost
from newskills.metrics.counting.corpus import jackknife
from newskills.metrics.counting.seeds import SeedMetric

SCORE, BY_TASK, RATING = "wb_score", "wb_task_score", "rating"
WEIGHTS: Mapping[str, float] = {
    "creative": 0.5,
    "planning-reasoning": 1.25,
    "math-data": 1.0,
    "information": 0.75,
    "coding": 1.25,
}
"""Of the groups of tasks, on the authors' leaderboard."""


class WildBenchMetric(SeedMetric):
    """`wb_score`: the mean mark, stretched; `wb_task_score`: the weighted mean of five groups of tasks; `rating`.

    A sample counts in the group of each of its tags (`task_groups`), twice where two tags are of one group.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"ratings": Any}
    headline = (SCORE,)
    columns = ("num_entries", "avg_tokens", "gen_seconds", SCORE, BY_TASK, RATING)

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")
        self._marks: list[list[tuple[float, Sequence[str]] | None]] = []

    def scores(self, record: Row) -> Scores:
        """None of 0–1: a stretched mark may be negative."""
        return {}

    def update(self, predictions: Sequence[Row]) -> None:
        """Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        self._marks.append([_marked(record) for record in predictions])

    def figures(self) -> Iterable[str]:
        return (SCORE, BY_TASK, RATING)

    def figure(self, name: str, seed: int) -> Number | None:
        counts, score = _FIGURES[name]
        sums = [None if sample[seed] is None else counts(sample[seed]) for sample in self._marks]
        return jackknife(sums, score)

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"ratings": {"all": 1.0}, "outcome": "wrong", "outcome_cause": "truncation"}


def _marked(record: Row) -> tuple[float, Sequence[str]] | None:
    mark = (record.get("ratings") or {}).get("all")
    return None if mark is None or is_lost(record) else (float(mark), record.get("task_groups") or ())


def _whole(marked: Any) -> Sequence[float]:
    return marked[0], 1.0


def _by_group(marked: Any) -> Sequence[float]:
    """For each group the sum of the marks, and how often it is named."""
    mark, groups = marked
    counts = [float(groups.count(group)) for group in WEIGHTS]
    return [*(mark * count for count in counts), *counts]


def _stretched(mark: float) -> float:
    return 20 * (mark - 5)


def _weighted(sums: Sequence[float]) -> float:
    """Groups without a sample weigh nothing."""
    parts = list(zip(WEIGHTS.values(), sums[: len(WEIGHTS)], sums[len(WEIGHTS) :], strict=True))
    weight = math.fsum(weight for weight, _, count in parts if count)
    total = math.fsum(weight * _stretched(marks / count) for weight, marks, count in parts if count)
    return total / weight if weight else 0.0


_FIGURES: Mapping[str, tuple[Callable[[Any], Sequence[float]], Callable[[Sequence[float]], float]]] = {
    SCORE: (_whole, lambda sums: _stretched(sums[0] / sums[1]) if sums[1] else 0.0),
    BY_TASK: (_by_group, _weighted),
    RATING: (_whole, lambda sums: sums[0] / sums[1] if sums[1] else 0.0),
}
