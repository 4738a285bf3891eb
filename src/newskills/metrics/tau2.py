# SPDX-License-Identifier: Apache-2.0
"""Tasks solved in all of k trials (pass^k of Yao et al. 2024, arXiv:2406.12045)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores, is_lost


class Tau2Metric(ScoreMetric):
    """`reward`, and beside each pass@k `all_of_k`: the chance that k trials of a task all succeed, over the tasks
    with so many trials that were scored."""

    score_fields: ClassVar[Mapping[str, Any]] = {"reward": int | float | None}
    headline = ("reward",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "reward", "all_of_k")

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False)
        self._trials: list[tuple[int, int]] = []

    def scores(self, record: Row) -> Scores:
        return {"reward": record.get("reward")}

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"reward": 0.0, "outcome": NO_ANSWER, "outcome_cause": "truncation"}

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        rewards = [record.get("reward") for record in predictions if not is_lost(record)]
        scored = [reward for reward in rewards if reward is not None]
        self._trials.append((sum(reward == 1 for reward in scored), len(scored)))

    def metrics(self) -> dict[str, Row]:
        modes = super().metrics()
        for k in range(1, self._samples + 1):
            shares = [comb(won, k) / comb(count, k) for won, count in self._trials if count >= k]
            if shares:
                modes[f"pass@{k}"]["all_of_k"] = 100 * sum(shares) / len(shares)
        return modes
