# SPDX-License-Identifier: Apache-2.0
"""Means of points that may be negative, cut to 0–100 (HealthBench: Arora et al. 2025, arXiv:2505.08775, §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import Scores, is_lost
from newskills.metrics.counting.corpus import jackknife_number
from newskills.metrics.counting.seeds import SeedMetric

SCORE = "score"
_AXIS = "axis_"
_MET = "met_"


class RubricMetric(SeedMetric):
    """`score`: the mean of all `rubric_score`, cut to 0–100 as a whole; `axis_…`: the same of one axis; `met_…`: the
    percentage of replies that meet a criterion with a name."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "rubric_score": int | float | None,
        "axis_scores": dict[str, Any] | None,
        "criteria_met": dict[str, Any] | None,
    }
    headline = (SCORE,)
    columns = ("num_entries", "avg_tokens", "gen_seconds", SCORE)

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")
        self._values: list[list[dict[str, float]]] = []

    def scores(self, record: Row) -> Scores:
        """Return no score of 0–1: points may be negative, and only their mean is cut."""
        return {}

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        self._values.append([_axis_points(record) for record in predictions])

    def figures(self) -> Iterable[str]:
        names = {name for samples in self._values for points in samples for name in points}
        return sorted(names, key=lambda name: (name != SCORE, name))

    def figure(self, name: str, seed: int) -> Number | None:
        values = [samples[seed].get(name) for samples in self._values]
        return jackknife_number([None if value is None else (value, 1.0) for value in values], _clipped_mean)

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"rubric_score": 0.0, "axis_scores": dict.fromkeys(prediction.get("axis_scores") or (), 0.0)}
        return prediction | wrong | {"outcome": "wrong", "outcome_cause": "truncation"}


def _axis_points(record: Row) -> dict[str, float]:
    score = record.get("rubric_score")
    if score is None or is_lost(record):
        return {}
    axes = record.get("axis_scores") or {}
    met = record.get("criteria_met") or {}
    return {
        SCORE: float(score),
        **{f"{_AXIS}{axis}": float(value) for axis, value in axes.items()},
        **{f"{_MET}{name}": float(value) for name, value in met.items()},
    }


def _clipped_mean(sums: Sequence[float]) -> float:
    total, count = sums
    if count:
        return 100.0 * min(max(total / count, 0.0), 1.0)
    return 0.0
