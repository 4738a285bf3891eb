# SPDX-License-Identifier: Apache-2.0
"""Problems in steps: those solved whole, and the share of all steps (SciCode, arXiv:2407.13168)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.base.stats import Z95
from newskills.metrics.counting.base import NO_ANSWER, Scores, is_lost
from newskills.metrics.programs.base import SUSPICIOUS, ProgramMetric


class SciCodeMetric(ProgramMetric):
    """`problem_accuracy`; `subtask_accuracy`, of all steps of all problems; `num_problems`, `num_subtasks`."""

    score_fields: ClassVar[Mapping[str, Any]] = {"eval_status": Any, "is_correct": Any}
    headline = ("problem_accuracy",)
    columns = (
        *("num_entries", "avg_tokens", "gen_seconds", "problem_accuracy", "subtask_accuracy"),
        *("num_problems", "num_subtasks", NO_ANSWER, SUSPICIOUS),
    )

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self._steps: list[tuple[float, int]] = []

    def scores(self, record: Row) -> Scores:
        is_correct = record.get("is_correct")
        if is_correct is None or isinstance(is_correct, bool | int):
            return {"problem_accuracy": is_correct}
        return {}

    def incorrect(self, prediction: Row) -> Row:
        status = [{**step, "passed": False} for step in prediction.get("eval_status") or []]
        wrong: Row = {"is_correct": False, "eval_status": status, "outcome": NO_ANSWER}
        return prediction | wrong | {"outcome_cause": "truncation"}

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        scored = [
            steps for record in predictions if not is_lost(record) and (steps := _step_counts(record)) is not None
        ]
        if scored:
            self._steps.append(
                (sum(passed for passed, _ in scored) / len(scored), max(count for _, count in scored))
            )

    def numbers(self) -> dict[str, dict[str, Number]]:
        modes = super().numbers()
        steps = sum(count for _, count in self._steps)
        if not steps:
            return modes
        share = math.fsum(passed for passed, _ in self._steps) / steps
        spread = math.sqrt(math.fsum((passed - share * count) ** 2 for passed, count in self._steps))
        half = Z95 * spread / steps
        number = Number(
            value=100 * share,
            low=100 * max(0.0, share - half),
            high=100 * min(1.0, share + half),
            n=len(self._steps),
            method="linearised",
        )
        averages = [mode for mode in modes if mode.startswith("pass@1[")] or ["pass@1"]
        for mode in averages[-1:]:
            modes[mode]["subtask_accuracy"] = number
        return modes

    def metrics(self) -> dict[str, Row]:
        steps = sum(count for _, count in self._steps)
        counts = {"num_problems": self._problems, "num_subtasks": steps}
        return {mode: row | counts for mode, row in super().metrics().items()}


def _step_counts(record: Row) -> tuple[int, int] | None:
    """Return (passed, all) of the steps; None where the record has no list of them."""
    status = record.get("eval_status")
    if isinstance(status, list):
        return (sum(bool(step["passed"]) for step in status), len(status))
    return None
