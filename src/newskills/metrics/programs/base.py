# SPDX-License-Identifier: Apache-2.0
"""What metrics of programs that were run count beside scores."""

from __future__ import annotations

from collections.abc import Sequence

from newskills.base.records import Row
from newskills.metrics.counting.base import ScoreMetric

SUSPICIOUS = "suspicious"


class ProgramMetric(ScoreMetric):
    """Adds `suspicious` to each row where there are any: samples whose code tried, or names, what honest code has no
    use for (field `suspicious` of the record)."""

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self.fields = {**self.fields, SUSPICIOUS: str | None}

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        self._beside[SUSPICIOUS] += sum(bool(record.get(SUSPICIOUS)) for record in predictions)

    def _common(self) -> Row:
        row = super()._common()
        if count := self._beside[SUSPICIOUS]:
            row[SUSPICIOUS] = count
        return row
