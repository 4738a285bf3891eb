# SPDX-License-Identifier: Apache-2.0
"""The stage rl from Python, under the names of the recipe that this one replaces.

>>> config = RLMathConfig(model_name_or_path="outputs/sft_tir", num_generations=8)
>>> config.stage().num_generations
8
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.aimo.training.evaluating import EvalCallback
from newskills.aimo.training.judging import LLMJudgeRewardFunction
from newskills.aimo.training.rewards import MathRewardFunction
from newskills.aimo.training.staged import train_stage
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills_aimo.recipe.settings import TESTS, AimoConfig, RlStage

__all__ = ["EvalCallback", "LLMJudgeRewardFunction", "MathRewardFunction", "RLMathConfig", "RLMathTrainer"]

PROBLEMS, ANSWERS = ("problem", "prompt", "question"), ("expected_answer", "answer")
"""Fields of rows, the first that is there."""


class RLMathConfig(Struct, frozen=True, kw_only=True):
    """Settings of the stage, under their old names; `stage()` has them under ours."""

    model_name_or_path: str = "outputs/sft_tir"
    output_dir: str = "outputs/rl_math"
    learning_rate: float = 1e-6
    per_device_train_batch_size: int = 4
    gradient_accumulation_steps: int = 8
    num_generations: int = 4
    max_grad_norm: float = 0.5
    max_completion_length: int = 2048
    temperature: float = 0.7
    top_p: float = 0.95
    correct_reward: float = 1.0
    incorrect_reward: float = -0.5
    format_reward: float = 0.1
    length_penalty: float = 0.0
    beta: float = 0.1
    num_train_epochs: float = 1.0
    save_steps: int = 100
    logging_steps: int = 5
    lora_r: int = 16
    lora_alpha: float = 32.0
    lora_dropout: float = 0.05
    eval_steps: int = 100
    eval_samples: int = 50
    eval_temperature: float = 0.1
    use_vllm: bool = True
    vllm_gpu_memory_utilization: float = 0.5
    force_cpu: bool = False
    report_to: str = "tensorboard"
    decontaminate: tuple[str, ...] = TESTS

    def stage(self) -> RlStage:
        """Return the same settings as a stage of `ns aimo train`."""
        return msgspec.structs.replace(
            AimoConfig().rl,
            start=self.model_name_or_path,
            output=self.output_dir,
            learning_rate=self.learning_rate,
            batch_size=self.per_device_train_batch_size,
            accumulation=self.gradient_accumulation_steps,
            num_generations=self.num_generations,
            max_grad_norm=self.max_grad_norm,
            max_tokens=self.max_completion_length,
            temperature=self.temperature,
            top_p=self.top_p,
            correct=self.correct_reward,
            wrong=self.incorrect_reward,
            boxed=self.format_reward,
            length_penalty=self.length_penalty,
            beta=self.beta,
            epochs=self.num_train_epochs,
            save_steps=self.save_steps,
            logging_steps=self.logging_steps,
            lora_rank=self.lora_r,
            lora_alpha=self.lora_alpha,
            lora_dropout=self.lora_dropout,
            eval_steps=self.eval_steps,
            eval_samples=self.eval_samples,
            eval_temperature=self.eval_temperature,
            vllm="colocate" if self.use_vllm and not self.force_cpu else "none",
            vllm_memory=self.vllm_gpu_memory_utilization,
        )


class RLMathTrainer:
    """Trains on problems with answers. `output_dir` is as `ns aimo train` leaves it; the same call goes on there."""

    def __init__(self, config: RLMathConfig, reward_fn: MathRewardFunction | None = None) -> None:
        """Check the rewards. Raises ConfigError for rewards with a verifier of their own: answers are judged by the
        math grader."""
        if reward_fn is not None and reward_fn.answer_verifier is not None:
            raise ConfigError(
                "RLMathTrainer judges answers by the math grader; a verifier of your own cannot take its place.",
                hint="Give MathRewardFunction() none, or write a grader: ns grpo --training_data=FILE "
                "++eval_type=FILE.py::NAME",
            )
        self.config = config
        if reward_fn is not None:
            self.config = _with_rewards(config, reward_fn)

    def train(self, dataset: Iterable[Row]) -> Path:
        """Train on `dataset`, and return the folder of the trained model. Rows have `problem` and `expected_answer`, or
        other names of these.

        Raises NewskillsError.
        """
        config = self.config
        return train_stage(
            "rl",
            config.stage(),
            (_problem_row(row, number) for number, row in enumerate(dataset, 1)),
            decontaminate=config.decontaminate,
            report_to=config.report_to,
            force_cpu=config.force_cpu,
        )


def _with_rewards(config: RLMathConfig, rewards: MathRewardFunction) -> RLMathConfig:
    return msgspec.structs.replace(
        config,
        correct_reward=rewards.correct_reward,
        incorrect_reward=rewards.incorrect_reward,
        format_reward=rewards.format_reward,
        length_penalty=rewards.length_penalty,
    )


def _problem_row(row: Row, number: int) -> Row:
    values = [next((str(row[name]) for name in names if row.get(name)), None) for names in (PROBLEMS, ANSWERS)]
    if None in values:
        lacks = " or ".join(PROBLEMS if values[0] is None else ANSWERS)
        raise DataError(f"Row {number} has no {lacks}; its keys are {', '.join(row)}.")
    return {"problem": values[0], "expected_answer": values[1]}
