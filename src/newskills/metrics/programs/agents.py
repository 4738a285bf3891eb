# SPDX-License-Identifier: Apache-2.0
"""What work of agents costs beside its score: steps, seconds, money, and environments that failed."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores

EFFORT = {"avg_steps": "num_steps", "avg_agent_seconds": "agent_seconds", "avg_cost": "cost"}
"""Column → field of a record, whose mean over the samples that have it is shown."""
EFFORT_FIELDS: Mapping[str, Any] = dict.fromkeys(EFFORT.values(), int | float | None)
ENVIRONMENT_FAILED = "environment_failed"


class AgentMetric(ScoreMetric):
    """Adds to each row `avg_steps`, `avg_agent_seconds` and `avg_cost` of a sample, and `environment_failed`: percent
    of samples that are unscored because their environment failed."""

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False)
        self._effort: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        for record in predictions:
            for column, field in EFFORT.items():
                if (value := record.get(field)) is not None:
                    self._effort[column] += value
                    self._counted[column] += 1

    def _common(self) -> Row:
        row = super()._common()
        row |= {column: self._effort[column] / count for column, count in self._counted.items()}
        failed = sum(n for (outcome, cause), n in self._endings.items() if (outcome, cause) == _FAILED)
        return row | {ENVIRONMENT_FAILED: 100.0 * failed / (self._problems * self._samples)}

    @abstractmethod
    def incorrect(self, prediction: Row) -> Row: ...


_FAILED = ("unscored", "environment")


class TerminalMetric(AgentMetric):
    """`tasks_resolved`, `tests_timed_out` and `no_verdict`, from what the test script said (`task-tests`); `reward` is
    the mean of its rewards, which may be parts of 1."""

    score_fields: ClassVar[Mapping[str, Any]] = {"task-tests": dict[str, Any] | None, **EFFORT_FIELDS}
    headline = ("tasks_resolved",)
    columns = (
        *("num_entries", "avg_tokens", "gen_seconds", "tasks_resolved", "reward", "tests_timed_out", "no_verdict"),
        *(ENVIRONMENT_FAILED, "avg_steps", "avg_cost"),
    )

    def scores(self, record: Row) -> Scores:
        report = record.get("task-tests")
        if not report:
            return {}
        reward = report.get("reward")
        return {
            "tasks_resolved": bool(reward is not None and reward >= 1),
            "reward": min(max(float(reward or 0.0), 0.0), 1.0),
            "tests_timed_out": bool(report.get("timed_out")),
            "no_verdict": reward is None and not report.get("timed_out"),
        }

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"outcome": NO_ANSWER, "outcome_cause": "truncation"}
        return prediction | {"task-tests": {"reward": 0.0, "timed_out": False}} | wrong
