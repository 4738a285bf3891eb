# SPDX-License-Identifier: Apache-2.0
"""The grader of an evaluation as verl's reward: `custom_reward_function.path=pkg://…verl_reward`, name `compute_score`.

verl calls it in threads of its reward workers, one answer at a time. Grading happens in killable processes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from newskills.base.errors import GraderError
from newskills.base.pool import PoolOptions, WorkerPool
from newskills.base.records import Failure, Row, Score

PROCESSES = 2
"""For each of verl's reward workers, of which there are eight (`reward.num_workers`)."""
BROKEN = 20
"""So many failures in a row are not the answers' fault."""


class _Rewards:
    """One pool of grading processes for this process, made when it is first needed."""

    def __init__(self) -> None:
        self._pool: WorkerPool[Score] | None = None
        self._lock = threading.Lock()
        self._failures = 0

    def verdict(self, row: Row) -> Score | None:
        """None: unscored. Raises GraderError where the grader fails again and again."""
        with self._lock:
            if self._pool is None:
                config = {"name": "math", "config": {}}
                options = PoolOptions(processes=PROCESSES)
                self._pool = WorkerPool(
                    "newskills.graders.worker:make", config, result_type=Score, options=options
                )
        result = self._pool.submit(row).result()
        if isinstance(result, Score) and result.outcome != "unscored":
            self._failures = 0
            return result
        self._failures += 1
        if self._failures >= BROKEN:
            why = result.message if isinstance(result, Failure) else result.why
            raise GraderError(f"The math grader has failed for {BROKEN} answers in a row: {why}")
        return None


_REWARDS = _Rewards()


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, float]:
    """`score` and `acc`: 1.0 where the math grader finds `ground_truth` in the answer, else 0.0; `no_answer`;
    `unscored`: 1.0 for an answer that the grader could not judge. verl cannot leave such an answer out: it gets 0.0.

    Raises GraderError, which stops the training, where it is the grader that is broken.
    """
    problem = (extra_info or {}).get("problem")
    row: Row = {"generation": solution_str, "expected_answer": str(ground_truth), "finish_reason": "stop"}
    if problem is not None:
        row["problem"] = str(problem)
    score = _REWARDS.verdict(row)
    outcome = "unscored" if score is None else score.outcome
    right = float(outcome == "correct")
    return {
        "score": right,
        "acc": right,
        "no_answer": float(outcome == "no_answer"),
        "unscored": float(outcome == "unscored"),
    }
