# SPDX-License-Identifier: Apache-2.0
"""Proofs that Lean accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores
from newskills.metrics.counting.tally import AVERAGE_MODE, Tally, mean_of


class LeanMetric(ScoreMetric):
    """`lean4_correct`, of the proofs that Lean decided; `timeout_error`: percent of all samples that were late.

    Of several samples together (`pass@k`, votes), all of the first k were late.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"proof_status": str | None}
    headline = ("lean4_correct",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "lean4_correct", "timeout_error", NO_ANSWER)

    def __init__(self) -> None:
        super().__init__(answer_key="predicted_proof")
        self._late: Tally | None = None

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        late = [record.get("proof_status") == "timeout" for record in predictions]
        self._late = self._late or Tally(len(late))
        self._late.add(late, {"pass": list(accumulate(late, min))})

    def scores(self, record: Row) -> Scores:
        status = record.get("proof_status")
        if status in (None, "failed"):
            return {"lean4_correct": None}
        return {"lean4_correct": status == "completed"}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"proof_status": "no_proof", "outcome": NO_ANSWER, "outcome_cause": "truncation"}
        return prediction | {self.answer_key: None} | wrong

    def metrics(self) -> dict[str, Row]:
        modes = super().metrics()
        if self._late is None:
            return modes
        alone, together = self._late.values(AVERAGE_MODE), self._late.values("pass")
        for mode, family, k in self._modes():
            late = alone[k] if family == AVERAGE_MODE else together[k]
            modes[mode]["timeout_error"] = 100.0 * mean_of(late)
        return modes
