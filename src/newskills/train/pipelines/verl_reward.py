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
from newskills.base.records import Failure, Score

PROCESSES = 2
"""For each of verl's reward workers, of which there are eight (`reward.num_workers`)."""
_POOLS: list[WorkerPool[Score]] = []
_MAKING = threading.Lock()


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, float]:
    """`score` and `acc`: 1.0 where the math grader finds `ground_truth` in the answer, else 0.0; `no_answer`,
    `unscored`: 1.0 for an answer that takes the grader too long. verl cannot leave an answer out, so that one gets 0.0.

    Raises GraderError where the grader itself fails, which stops the training: 0.0 would teach the model something.
    """
    problem = (extra_info or {}).get("problem")
    row = {"generation": solution_str, "expected_answer": str(ground_truth), "finish_reason": "stop"}
    if problem is not None:
        row["problem"] = str(problem)
    result = _pool().submit(row).result()
    if isinstance(result, Failure):
        if result.cause != "timeout":
            raise GraderError(f"The math grader failed: {result.message}")
        return {"score": 0.0, "acc": 0.0, "no_answer": 0.0, "unscored": 1.0}
    if result.outcome == "unscored" and result.cause not in (None, "timeout"):
        raise GraderError(f"The math grader failed: {result.why}")
    right = float(result.outcome == "correct")
    return {
        "score": right,
        "acc": right,
        "no_answer": float(result.outcome == "no_answer"),
        "unscored": float(result.outcome == "unscored"),
    }


def _pool() -> WorkerPool[Score]:
    """One for this process, made when it is first needed."""
    with _MAKING:
        if not _POOLS:
            config = {"name": "math", "config": {}}
            options = PoolOptions(processes=PROCESSES)
            _POOLS.append(WorkerPool("newskills.graders.worker:make", config, result_type=Score, options=options))
        return _POOLS[0]
