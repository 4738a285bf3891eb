# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning of mathematics over the Tinker API.

For each problem a group of samples; reward = correct, wrong, and a bonus for a boxed answer; advantage = reward −
mean of the group; groups whose advantages are all 0 are left out; the loss `importance_sampling`, summed over tokens,
and a step of Adam. The loop is that of `newskills.train.loops.grpo`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.reward import FormatReward, RewardConfig
from newskills.run.training.skill import Skill, asking_by
from newskills.train.backends.tinker.client import TinkerClient
from newskills.train.loops.evaluation import HeldOut, Measured, measure
from newskills.train.loops.groups import Group, measured, sample_rows
from newskills.train.loops.grpo import GrpoConfig, grpo
from newskills.train.loops.samples import Problem, Scorer
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import EvalSettings
from newskills.train.verbs import AdamParams, SamplingClient
from newskills_tinker.recipes.run_folder import (
    RunFolder,
    model_files,
    optimizer_metrics,
    rate_for,
    take_rows,
)
from newskills_tinker.recipes.settings import TinkerRlConfig

NEEDS = ("problem", "expected_answer")
EVAL_TEMPERATURE = 0.1
SAMPLER_SECONDS = 86_400
"""For which the service keeps the weights that a step sampled from."""


def train_on_rewards(
    client: TinkerClient,
    config: TinkerRlConfig,
    rows: Sequence[Row],
    *,
    on_step: Callable[[Row], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train from the last line of checkpoints.jsonl with a state; return whether all batches are done.

    `rows` have `problem` and `expected_answer`. Raises DataError, TrainingError (the last checkpoint stays).
    """
    folder = _Folder(config)
    try:
        if folder.finished:
            return True
        folder.begin(client, config.resume_from)
        files = model_files(config, client)
        skill = Skill(files, asking_by(config.prompt_config, files))
        problems, held = _split_problems(config, rows, skill)
        folder.per_epoch = max(1, len(problems) // config.batch_size)
        folder.total = config.num_epochs * folder.per_epoch
        with BatchGrader(config.eval_type, config.eval_config) as verdict:
            scorer = skill.scorer(verdict, _reward_config(config))
            held_out = None
            if held:
                held_out = _held_out(config, held, scorer)
            hooks = Hooks(
                before_step=lambda step: client.sample_from(client.save_sampler(f"{step:06d}", SAMPLER_SECONDS)),
                on_step=lambda _: on_step(folder.history[-1]),
                stop=stop,
                held_out=held_out,
                measure=_measure_held_out,
            )
            rate = config.learning_rate or rate_for(files)
            return grpo(client, problems, _step_settings(config, folder.total, rate), folder, scorer, hooks)
    finally:
        folder.close()


class _Steps(GrpoConfig, frozen=True, kw_only=True):
    def adam(self, step: int) -> AdamParams:
        """Return the parameters of a step: momentum as the service's own default; gradients are not clipped."""
        return AdamParams(learning_rate=self.learning_rate)

    def divisor(self, tokens: int, samples: int) -> int:
        """Return 1: the loss is a sum."""
        return 1


class _Folder(RunFolder):
    def __init__(self, config: TinkerRlConfig) -> None:
        super().__init__(config)
        self._saves_samples = config.save_samples
        self._groups: Sequence[Group] = ()

    def groups(self, groups: Sequence[Group], step: int) -> None:
        self._groups = groups
        if self._saves_samples:
            self.samples(sample_lines(groups, step))

    def recipe_metrics(self, metrics: Row) -> Row:
        row: Row = {
            "optim/lr": metrics["learning_rate"],
            "train/datums": _count_datums(self._groups),
            "train/step": metrics["step"],
        }
        measurements = {name: value for name, value in metrics.items() if name.startswith("eval_")}
        if row["train/datums"]:
            tokens = sum(rollout.tokens for group in self._groups for rollout in group.rollouts)
            row |= {"loss/sum": metrics["loss"], "loss/per_token": metrics["loss"] / max(1, tokens)}
            row |= optimizer_metrics(metrics, {*measured(self._groups), *measurements})
        means = [before["reward/batch_mean"] for before in self.history if "reward/batch_mean" in before]
        row |= {
            "reward/batch_mean": metrics["reward"],
            "reward/running_mean": fmean([*means, metrics["reward"]]),
            "train/accuracy": metrics["correct"],
        }
        row |= {f"eval/{name.removeprefix('eval_')}": value for name, value in measurements.items()}
        if metrics["step"] == self.total:
            return row | _final_metrics(row)
        return row


class _HeldOut(HeldOut, frozen=True, kw_only=True):
    def due(self, done: int, steps: int) -> bool:
        """Return whether to measure: neither before the first step nor after the last, unless it is its turn."""
        return done > 0 and done % self.settings.every == 0


def _measure_held_out(client: SamplingClient, held_out: HeldOut, seed: int) -> Measured:
    """Measure on the held-out problems. `seed` belongs to the number of finished steps; samples are drawn with the seed
    of the last step, as its problems were."""
    return measure(client, held_out, seed - 1)


def _count_datums(groups: Sequence[Group]) -> int:
    """Return the number of samples to learn from: those of groups with an advantage that could be graded."""
    taught = (group for group in groups if group.teaches)
    return sum(judged.reward is not None for group in taught for judged in group.judged)


def sample_lines(groups: Sequence[Group], step: int) -> list[Row]:
    """Return the lines of samples.jsonl."""
    kept = ("text", "reward", "advantage", "extracted_answer")
    return [
        {
            "step": step,
            "batch_idx": step - 1,
            "problem_idx": row["problem_idx"],
            "problem": row["problem"],
            "ground_truth": row["ground_truth"],
            "responses": [{name: response[name] for name in kept} for response in row["responses"]],
            "mean_reward": row["mean_reward"],
        }
        for row in sample_rows(groups, step)
    ]


def _split_problems(
    config: TinkerRlConfig, rows: Sequence[Row], skill: Skill
) -> tuple[list[Problem], list[Problem]]:
    """Return (problems to learn from, those held out); no problem is in both."""
    kept = take_rows(rows, config.max_samples, NEEDS, config.dataset_name)
    if not config.eval_every:
        return [skill.problem(row) for row in kept], []
    held = []
    if len(kept) > config.eval_samples:
        held = kept[-config.eval_samples :]
    held_texts = {row["problem"] for row in held}
    learnt = [row for row in kept[: len(kept) - len(held)] if row["problem"] not in held_texts]
    if not held or not learnt:
        raise DataError(
            f"{config.dataset_name} has {len(kept)} problems; eval_samples={config.eval_samples} leaves none "
            "to train on."
        )
    return [skill.problem(row) for row in learnt], [skill.problem(row) for row in held]


def _reward_config(config: TinkerRlConfig) -> RewardConfig:
    return RewardConfig(
        correct=config.correct_reward,
        wrong=config.incorrect_reward,
        no_answer=config.incorrect_reward,
        format=FormatReward(box=config.format_bonus),
    )


def _step_settings(config: TinkerRlConfig, steps: int, rate: float) -> _Steps:
    return _Steps(
        steps=steps,
        batch_size=config.batch_size,
        group_size=config.group_size,
        learning_rate=rate,
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        top_p=config.top_p,
        scale_by_std=False,
        save_every=config.save_every,
        seed=config.seed,
    )


def _held_out(config: TinkerRlConfig, problems: Sequence[Problem], scorer: Scorer) -> HeldOut:
    settings = EvalSettings(
        every=config.eval_every,
        max_problems=config.eval_samples,
        temperature=EVAL_TEMPERATURE,
        max_tokens=config.max_tokens,
        final="last",
    )
    return _HeldOut(problems=problems, scorer=scorer, settings=settings)


def _final_metrics(row: Row) -> Row:
    """Return the fields that only the last row has."""
    return {
        "final/steps": row["train/step"],
        "final/reward_mean": row["reward/running_mean"],
        "final/reward_last": row["reward/batch_mean"],
        "final/accuracy": row["train/accuracy"],
    }


def plan_of(config: TinkerRlConfig) -> str:
    """Describe a run in words."""
    return f"{config.num_epochs} epochs of {config.batch_size} problems × {config.group_size} samples per step"
