# SPDX-License-Identifier: Apache-2.0
"""An evaluation on held-out problems while a trainer of transformers or TRL works."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from newskills.aimo.local_model import LocalModel
from newskills.aimo.training.rewards import Verifier
from newskills.base.records import Row
from newskills.run.rewarding.reward import has_box
from newskills_aimo.recipe.answers import verify_answer


class EvalCallback:
    """Answers `eval_samples` problems of `eval_dataset` (`prompt`, `answer`) every `eval_steps` steps.

    Metrics go to the console and to Weights & Biases or TensorBoard. A trainer takes it among its `callbacks`; the
    stage rl of `ns aimo train` evaluates by itself (`--eval-steps`). Only the main process works.
    """

    def __init__(
        self,
        eval_dataset: Any,
        tokenizer: Any,
        answer_verifier: Verifier = verify_answer,
        eval_steps: int = 100,
        eval_samples: int = 50,
        max_completion_length: int = 2048,
        temperature: float = 0.1,
        report_to: str = "tensorboard",
        eval_batch_size: int = 8,
        output_dir: str | None = None,
    ) -> None:
        self.rows = list(eval_dataset)
        self.tokenizer, self.answer_verifier = tokenizer, answer_verifier
        self.eval_steps, self.eval_samples = eval_steps, min(eval_samples, len(self.rows))
        self.max_completion_length, self.temperature = max_completion_length, temperature
        self.eval_batch_size, self.report_to, self.output_dir = eval_batch_size, report_to, output_dir
        self._writer: Any = None

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return what answers the trainer's other events: nothing happens."""
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(name)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Evaluate where a step is due."""
        step = state.global_step
        if model is None or not state.is_world_process_zero or step == 0 or step % self.eval_steps:
            return
        metrics = self.evaluate(model, step)
        sys.stdout.write(f"[Eval] Step {step}: {metrics}\n")
        if self.report_to == "wandb":
            import wandb

            if wandb.run is not None:
                wandb.log(metrics, step=step)
        elif self.report_to == "tensorboard" and self.output_dir:
            if self._writer is None:
                from torch.utils.tensorboard import SummaryWriter

                self._writer = SummaryWriter(log_dir=self.output_dir)
            for name, value in metrics.items():
                self._writer.add_scalar(name, value, step)
            self._writer.flush()

    def evaluate(self, model: Any, step: int) -> dict[str, float]:
        """Return the metrics of `eval_samples` problems, others at each step. Unscored answers do not count."""
        rows: list[Row] = random.Random(step).sample(self.rows, self.eval_samples)  # noqa: S311 - no secret
        local = LocalModel(model, self.tokenizer)
        texts: list[str] = []
        for start in range(0, len(rows), self.eval_batch_size):
            prompts = [str(row["prompt"]) for row in rows[start : start + self.eval_batch_size]]
            replies = local.generate(
                prompts, max_new_tokens=self.max_completion_length, temperature=self.temperature
            )
            texts += [reply.text for reply in replies]
        verdicts = [self.answer_verifier(text, str(row["answer"])) for text, row in zip(texts, rows, strict=True)]
        scored = [verdict for verdict in verdicts if verdict is not None]
        count = max(1, len(texts))
        return {
            "eval/accuracy": sum(scored) / max(1, len(scored)),
            "eval/boxed_rate": sum(map(has_box, texts)) / count,
            "eval/avg_completion_length": sum(map(len, texts)) / count,
            "eval/num_samples": len(scored),
            "eval/num_correct": sum(scored),
            "eval/num_unscored": len(verdicts) - len(scored),
        }
