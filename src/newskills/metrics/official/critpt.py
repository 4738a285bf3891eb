# SPDX-License-Identifier: Apache-2.0
"""CritPt: what can be said before the service of its makers has judged, and what it said (arXiv:2509.26574)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores

_ACCURACY = "full_dataset_accuracy"


class CritPtMetric(ScoreMetric):
    """`functions`: replies that hold a function to send in; no accuracy.

    `accuracy` and `full_dataset_accuracy` are the service's share of right ones, of records that hold it.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"generated_code": str | None, _ACCURACY: int | float | None}
    headline = (_ACCURACY,)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "functions", "accuracy", _ACCURACY)

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False)

    def scores(self, record: Row) -> Scores:
        scores: dict[str, float | None] = {"functions": bool(record.get("generated_code"))}
        if (accuracy := record.get(_ACCURACY)) is not None:
            scores |= {"accuracy": accuracy, _ACCURACY: accuracy}
        return scores

    def incorrect(self, prediction: Row) -> Row:
        nothing: Row = {"generated_code": "", self.answer_key: None, "outcome": NO_ANSWER}
        return prediction | nothing | {"outcome_cause": "truncation"}
