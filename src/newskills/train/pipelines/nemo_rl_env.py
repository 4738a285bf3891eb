# SPDX-License-Identifier: Apache-2.0
"""The grader of an evaluation as an environment of NeMo-RL (https://docs.nvidia.com/nemo/rl, guide "Environments").

`env.newskills` of the configuration: num_workers (grading processes), eval_type and eval_config (the grader).
NeMo-RL cannot leave an answer out: what the grader could not judge gets 0.0, and is counted as `unscored`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray
import torch
from nemo_rl.environments.interfaces import EnvironmentInterface, EnvironmentReturn

from newskills.train.pipelines.grading_pool import GradingPool, Turns, answer_record, found_answer, verdict_text


class GradedAnswers(EnvironmentInterface):  # type: ignore[misc]
    """One turn: the answer is graded, and the episode ends."""

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        self._verdicts = GradingPool(
            cfg.get("eval_type") or "math", dict(cfg.get("eval_config") or {}), int(cfg.get("num_workers") or 2)
        )
        self._answers = self._unscored = 0

    def step(
        self,
        message_log_batch: Sequence[Turns],
        metadata: Sequence[Mapping[str, Any]],
        return_extracted_answer: bool = False,
    ) -> Any:
        """Grade the answers and return an EnvironmentReturn: 1.0 for what the grader calls correct, else 0.0.

        Raises GraderError, which stops the training, where it is the grader that is broken.
        """
        pairs = zip(message_log_batch, metadata, strict=True)
        scores = self._verdicts.scores([answer_record(turns, metadata) for turns, metadata in pairs])
        self._answers += len(scores)
        self._unscored += sum(score is None for score in scores)
        rewards = torch.tensor([float(score is not None and score.outcome == "correct") for score in scores])
        return EnvironmentReturn(
            observations=[{"role": "environment", "content": verdict_text(score)} for score in scores],
            metadata=list(metadata),
            next_stop_strings=[None] * len(scores),
            rewards=rewards,
            terminateds=torch.ones_like(rewards),
            answers=[found_answer(score) for score in scores] if return_extracted_answer else None,
        )

    def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, float]]:
        """Return shares over everything that this actor has graded."""
        rewards = batch["rewards"]
        lost = self._unscored / max(1, self._answers)
        return batch, {"accuracy": float(rewards.float().mean()), "unscored": lost}

    def shutdown(self) -> None:
        self._verdicts.close()


Environment = ray.remote(max_restarts=-1, max_task_retries=-1, max_concurrency=1000)(GradedAnswers)
"""The actor that NeMo-RL makes by its name."""
