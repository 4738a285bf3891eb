# SPDX-License-Identifier: Apache-2.0
"""The grader of an evaluation as verl's reward: `custom_reward_function.path=pkg://…verl_reward`, name `compute_score`.

verl calls it in threads of its reward workers, one answer at a time. Grading happens in killable processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from newskills.base.records import Row
from newskills.train.pipelines.grading_pool import GradingPool

PROCESSES = 2
"""For each of verl's reward workers, of which there are eight (`reward.num_workers`)."""
_VERDICTS = GradingPool(processes=PROCESSES)


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, float]:
    """Return `score` and `acc`: 1.0 where the math grader finds `ground_truth` in the answer, else 0.0; `no_answer`;
    `unscored`: 1.0 for an answer that the grader could not judge. verl cannot leave such an answer out: it gets 0.0.

    Raises GraderError, which stops the training, where it is the grader that is broken.
    """
    problem = (extra_info or {}).get("problem")
    row: Row = {"generation": solution_str, "expected_answer": str(ground_truth), "finish_reason": "stop"}
    if problem is not None:
        row["problem"] = str(problem)
    (score,) = _VERDICTS.scores([row])
    outcome = "unscored" if score is None else score.outcome
    right = float(outcome == "correct")
    return {
        "score": right,
        "acc": right,
        "no_answer": float(outcome == "no_answer"),
        "unscored": float(outcome == "unscored"),
    }
