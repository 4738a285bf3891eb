# SPDX-License-Identifier: Apache-2.0
"""The stage rl from Python, under the names of the recipe that this one replaces.

>>> config = RLMathConfig(model_name_or_path="outputs/sft_tir", num_generations=8)
>>> config.stage().num_generations
8
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, GraderError
from newskills.base.records import Row
from newskills.base.store import write_rows
from newskills.recipes.aimo.answers import verify_answers
from newskills.recipes.aimo.lines import ReportingOptions
from newskills.recipes.aimo.settings import TESTS, AimoConfig, RlStage
from newskills.run.rewarding.reward import boxed

Verifier = Callable[[str, str], bool]
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
        """The same as a stage of `ns aimo train`."""
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


class MathRewardFunction:
    """Rewards of completions, as the stage gives them: by the math grader unless a verifier is handed in.

    None for what the grader could not judge: trainers of TRL leave it out of its group.
    """

    __name__ = "math_correctness_reward"

    def __init__(
        self,
        answer_verifier: Verifier | None = None,
        correct_reward: float = 1.0,
        incorrect_reward: float = -0.5,
        format_reward: float = 0.1,
        length_penalty: float = 0.0,
    ) -> None:
        self.answer_verifier = answer_verifier
        self.correct_reward, self.incorrect_reward = correct_reward, incorrect_reward
        self.format_reward, self.length_penalty = format_reward, length_penalty

    def __call__(
        self, prompts: Sequence[str], completions: Sequence[str], answer: Sequence[str], **_: Any
    ) -> list[float | None]:
        pairs = list(zip(completions, answer, strict=True))
        verifier = self.answer_verifier
        right = _graded(pairs) if verifier is None else [_verified(verifier, *pair) for pair in pairs]
        return [
            None if gold is None else self._worth(text, right=gold)
            for gold, text in zip(right, completions, strict=True)
        ]

    def _worth(self, text: str, *, right: bool) -> float:
        worth = self.correct_reward if right else self.incorrect_reward
        worth += self.format_reward if boxed(text) else 0.0
        return worth - self.length_penalty * max(0.0, len(text) / 1000 - 2)


class RLMathTrainer:
    """Trains on problems with answers. `output_dir` is as `ns aimo train` leaves it; the same call goes on there."""

    def __init__(self, config: RLMathConfig, reward_fn: MathRewardFunction | None = None) -> None:
        """Raises ConfigError for rewards with a verifier of their own: answers are judged by the math grader."""
        if reward_fn is not None and reward_fn.answer_verifier is not None:
            raise ConfigError(
                "RLMathTrainer judges answers by the math grader; a verifier of your own cannot take its place.",
                hint="Give MathRewardFunction() none, or write a grader: ns grpo --training_data=FILE "
                "++eval_type=FILE.py::NAME",
            )
        self.config = config if reward_fn is None else _rewarded(config, reward_fn)

    def train(self, dataset: Iterable[Row]) -> Path:
        """The folder of the trained model. Rows have `problem` and `expected_answer`, or other names of these.

        Raises NewskillsError.
        """
        from newskills.commands.train.aimo.work.lines import run_line, tell
        from newskills.commands.train.aimo.work.stages import backend_for
        from newskills.recipes.aimo.lines import FINAL
        from newskills.recipes.aimo.training import StagedTraining, train

        config, out = self.config, Path(self.config.output_dir)
        rows = out / "problems.jsonl"
        write_rows(rows, (_problem(row, number) for number, row in enumerate(dataset, 1)))
        stage = msgspec.structs.replace(config.stage(), data_files=[str(rows)])
        training = StagedTraining(
            stages=("rl",),
            config=msgspec.structs.replace(AimoConfig(), rl=stage, decontaminate=config.decontaminate),
            backend=backend_for(stage, force_cpu=config.force_cpu),
            reporting=ReportingOptions(report_to=() if config.report_to == "none" else (config.report_to,)),
        )
        if code := train(training, ns=run_line, say=tell):
            raise ConfigError(f"The training ended with code {code}.", hint="The same call resumes from there.")
        return out / FINAL


def _verified(verifier: Verifier, text: str, truth: str) -> bool:
    """Raises GraderError for NaN, which Python takes for true."""
    verdict = verifier(text, truth)
    if isinstance(verdict, float) and math.isnan(verdict):
        raise GraderError(
            f"The verifier gave {verdict} for the answer to '{truth}'.", hint="Return true or false."
        )
    return verdict


def _graded(pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
    from newskills.recipes.aimo.answers import extract_answer_from_solution

    return verify_answers([(extract_answer_from_solution(text), truth) for text, truth in pairs])


def _rewarded(config: RLMathConfig, rewards: MathRewardFunction) -> RLMathConfig:
    return msgspec.structs.replace(
        config,
        correct_reward=rewards.correct_reward,
        incorrect_reward=rewards.incorrect_reward,
        format_reward=rewards.format_reward,
        length_penalty=rewards.length_penalty,
    )


def _problem(row: Row, number: int) -> Row:
    values = [next((str(row[name]) for name in names if row.get(name)), None) for names in (PROBLEMS, ANSWERS)]
    if None in values:
        lacks = " or ".join(PROBLEMS if values[0] is None else ANSWERS)
        raise DataError(f"Row {number} has no {lacks}; its keys are {', '.join(row)}.")
    return {"problem": values[0], "expected_answer": values[1]}
