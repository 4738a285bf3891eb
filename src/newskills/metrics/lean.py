# SPDX-License-Identifier: Apache-2.0
"""Proofs that Lean accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.base import NO_ANSWER, ScoreMetric, Scores


class LeanMetric(ScoreMetric):
    """`lean4_correct`, of the proofs that Lean decided; `timeout_error`: percent of all samples that were late."""

    score_fields: ClassVar[Mapping[str, Any]] = {"proof_status": str | None}
    headline = ("lean4_correct",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "lean4_correct", "timeout_error", NO_ANSWER)

    def __init__(self) -> None:
        super().__init__(answer_key="predicted_proof")
        self._late = 0

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        self._late += sum(record.get("proof_status") == "timeout" for record in predictions)

    def scores(self, record: Row) -> Scores:
        status = record.get("proof_status")
        undecided = status in (None, "failed")
        return {"lean4_correct": None if undecided else status == "completed"}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"proof_status": "no_proof", "outcome": NO_ANSWER, "outcome_cause": "truncation"}
        return prediction | {self.answer_key: None} | wrong

    def _beyond(self, numbers: Mapping[str, Number]) -> Row:
        late = 100.0 * self._late / (self._problems * self._samples)
        return {"timeout_error": late, **super()._beyond(numbers)}
