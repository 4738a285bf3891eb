# SPDX-License-Identifier: Apache-2.0
"""WB-Score (Lin et al. 2024, arXiv:2406.04770): marks from 1 to 10, stretched so that 5, barely acceptable, is 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import Scores
from newskills.metrics.ratios import Quotient, RatioMetric

SCORE, BY_TASK, RATING = "wb_score", "wb_task_score", "rating"
WEIGHTS: Mapping[str, float] = {
    "creative": 0.5,
    "planning-reasoning": 1.25,
    "math-data": 1.0,
    "information": 0.75,
    "coding": 1.25,
}
"""Of the groups of tasks, on the authors' leaderboard."""


def _mean_mark(sums: Sequence[float]) -> float:
    mark, samples, *_ = sums
    return mark / samples


def _stretched_mark(mark: float) -> float:
    return 20 * (mark - 5)


def _weighted_mean(sums: Sequence[float]) -> float:
    """Return the weighted mean of the groups' stretched marks; groups without a sample weigh nothing."""
    marks, counts = sums[2 : 2 + len(WEIGHTS)], sums[2 + len(WEIGHTS) :]
    parts = list(zip(WEIGHTS.values(), marks, counts, strict=True))
    weight = math.fsum(weight for weight, _, count in parts if count)
    total = math.fsum(weight * _stretched_mark(mark / count) for weight, mark, count in parts if count)
    if weight:
        return total / weight
    return 0.0


class WildBenchMetric(RatioMetric):
    """`wb_score`: the mean mark, stretched; `wb_task_score`: the weighted mean of five groups of tasks; `rating`.

    A sample counts in the group of each of its tags (`task_groups`), twice where two tags are of one group.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"ratings": Any, "task_groups": list[str] | None}
    headline = (SCORE,)
    columns = ("num_entries", "avg_tokens", "gen_seconds", SCORE, BY_TASK, RATING)
    ratios: ClassVar[Mapping[str, Quotient]] = {
        SCORE: lambda sums: _stretched_mark(_mean_mark(sums)),
        BY_TASK: _weighted_mean,
        RATING: _mean_mark,
    }

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")

    def scores(self, record: Row) -> Scores:
        """Return no score of 0–1: a stretched mark may be negative."""
        return {}

    def counts(self, record: Row) -> Sequence[float] | None:
        """Return the mark and 1; for each group the sum of the marks, then how often it is named."""
        mark, groups = (record.get("ratings") or {}).get("all"), record.get("task_groups") or ()
        if mark is None:
            return None
        named = [float(groups.count(group)) for group in WEIGHTS]
        return [float(mark), 1.0, *(float(mark) * count for count in named), *named]

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"ratings": {"all": 1.0}, "outcome": "wrong", "outcome_cause": "truncation"}
