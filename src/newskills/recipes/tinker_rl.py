# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, N806, N815 - names end with their dimensions
"""Reinforcement learning of mathematics over the Tinker API.

For each problem a group of samples; reward = correct, wrong, and a bonus for a boxed answer; advantage = reward −
mean of the group; groups whose advantages are all 0 are left out; the loss `importance_sampling`, summed over tokens,
and a step of Adam. Suffixes: `_P` problems, `_G` samples of one, `_T` tokens, `_D` datums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.recipes.skill import Skill, asking_by
from newskills.recipes.tinker_run import (
    RunConfig,
    RunFolder,
    Steps,
    begin,
    limited,
    model_files,
    rate_for,
    run_batches,
)
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.reward import FormatReward, RewardConfig
from newskills.train.loops.evaluation import EvalSettings, HeldOut, measure
from newskills.train.loops.groups import advantages_of
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.schedule import batch_at
from newskills.train.tinker.client import TinkerClient
from newskills.train.verbs import AdamParams, Datum, Sampled, SamplingParams

NEEDS = ("problem", "expected_answer")
EVAL_TEMPERATURE = 0.1
SAMPLER_SECONDS = 86_400
"""For which the service keeps the weights that a step sampled from."""


class TinkerRlConfig(RunConfig, frozen=True, kw_only=True):
    """`key=value` of `ns tinker rl`."""

    batch_size: Annotated[int, Meta(ge=1, description="problems per step")] = 64
    group_size: Annotated[int, Meta(ge=2, description="samples per problem (group size)")] = 16
    max_tokens: Annotated[int, Meta(ge=1, description="longest sample in tokens")] = 4096
    dataset_name: Annotated[str, Meta(description="published training set, or a JSONL file")] = (
        "lighteval/MATH-Hard"
    )
    eval_type: Annotated[str, Meta(description="grader that gives the reward")] = "math"
    eval_config: Annotated[dict[str, Any], Meta(description="settings of the grader")] = field(
        default_factory=dict
    )
    correct_reward: Annotated[float, Meta(description="reward of a correct answer")] = 1.0
    incorrect_reward: Annotated[float, Meta(description="reward of a wrong answer, or of none")] = -0.5
    format_bonus: Annotated[float, Meta(description="added to the reward if there is a boxed answer")] = 0.1
    num_epochs: Annotated[int, Meta(ge=1, description="passes over the problems")] = 1
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 100
    eval_every: Annotated[
        int, Meta(ge=0, description="steps between evaluations on held-out problems; 0 = none")
    ] = 0
    eval_samples: Annotated[
        int, Meta(ge=1, description="number of held-out problems, taken from the end of the data")
    ] = 50
    temperature: Annotated[float, Meta(gt=0, description="sampling temperature")] = 0.7
    top_p: Annotated[float, Meta(gt=0, le=1, description="nucleus sampling mass")] = 0.95
    save_samples: Annotated[bool, Meta(description="write samples.jsonl")] = True


class Rollout(Struct, frozen=True):
    """One problem with its group. All lists have a length of G."""

    problem: Problem
    texts_G: list[str]
    samples_G: list[Sampled]
    judged_G: list[Judged]
    advantages_G: list[float]


def reinforce(
    client: TinkerClient,
    config: TinkerRlConfig,
    rows: Sequence[Row],
    *,
    told: Callable[[Row], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Goes on from the last line of checkpoints.jsonl with a state; returns whether all batches are done.

    `rows` have `problem` and `expected_answer`. Raises DataError, TrainingError (the last checkpoint stays).
    """
    folder = RunFolder(config)
    try:
        if folder.finished:
            return True
        first = begin(client, folder, config.resume_from)
        files = model_files(config, client)
        skill = Skill(files, asking_by(config.prompt_config, files))
        problems, held = _problems(config, rows, skill)
        per_epoch = max(1, len(problems) // config.batch_size)
        total = config.num_epochs * per_epoch
        steps = Steps(first=first, total=total, per_epoch=per_epoch, save_every=config.save_every)
        with BatchGrader(config.eval_type, config.eval_config) as verdict:
            scorer = skill.scorer(verdict, _rewards(config))
            loop = _Loop(client, config, folder, problems, scorer)
            loop.rate, loop.last = config.learning_rate or rate_for(files), total - 1
            loop.held = HeldOut(problems=held, scorer=scorer, settings=_eval_settings(config)) if held else None
            return run_batches(client, folder, steps, loop.step, told=told, stop=stop)
    finally:
        folder.close()


class _Loop:
    def __init__(
        self,
        client: TinkerClient,
        config: TinkerRlConfig,
        folder: RunFolder,
        problems: Sequence[Problem],
        scorer: Scorer,
    ) -> None:
        self._client, self._config, self._folder = client, config, folder
        self._problems, self._scorer = problems, scorer
        self.rate, self.last = 0.0, 0
        self.held: HeldOut | None = None

    def step(self, batch: int) -> Row:
        self._client.sample_from(self._client.save_sampler(f"{batch:06d}", SAMPLER_SECONDS))
        rollouts_P = self._roll_out(
            batch_at(self._problems, batch, self._config.batch_size, self._config.seed), batch
        )
        data_D = [datum for rollout in rollouts_P for datum in data_of(rollout)]
        row: Row = {"optim/lr": self.rate, "train/datums": len(data_D), "train/step": batch + 1}
        if data_D:
            output = self._client.forward_backward(data_D, "importance_sampling")
            changed = self._client.optim_step(AdamParams(learning_rate=self.rate))
            tokens = sum(len(one.tokens) for rollout in rollouts_P for one in rollout.samples_G)
            row |= {"loss/sum": output.loss, "loss/per_token": output.loss / max(1, tokens)}
            row |= {f"optim/{name}": value for name, value in changed.items()}
        if self._config.save_samples:
            self._folder.samples(shown(rollouts_P, batch))
        row |= self._rewarded(rollouts_P) | self._measured(batch)
        return row | _final(row) if batch == self.last else row

    def _roll_out(self, problems_P: Sequence[Problem], batch: int) -> list[Rollout]:
        config = self._config
        params = SamplingParams(
            max_tokens=config.max_tokens,
            stop=self._scorer.stops,
            temperature=config.temperature,
            top_p=config.top_p,
            seed=config.seed * 1_000_003 + batch,
        )
        samples_P_G = self._client.sample([problem.prompt for problem in problems_P], config.group_size, params)
        texts_P_G = [[self._scorer.text(one.tokens) for one in samples_G] for samples_G in samples_P_G]
        judged = iter(
            self._scorer.judge(
                [
                    (problem.row, text, one.stop_reason)
                    for problem, samples_G, texts_G in zip(problems_P, samples_P_G, texts_P_G, strict=True)
                    for one, text in zip(samples_G, texts_G, strict=True)
                ]
            )
        )
        judged_P_G = [[next(judged) for _ in samples_G] for samples_G in samples_P_G]
        return [
            Rollout(
                problem,
                texts_G,
                samples_G,
                judged_G,
                advantages_of([one.reward for one in judged_G], by_std=False),
            )
            for problem, texts_G, samples_G, judged_G in zip(
                problems_P, texts_P_G, samples_P_G, judged_P_G, strict=True
            )
        ]

    def _rewarded(self, rollouts_P: Sequence[Rollout]) -> Row:
        known = [one for rollout in rollouts_P for one in rollout.judged_G if one.reward is not None]
        mean = fmean(one.reward for one in known if one.reward is not None)
        means = [row["reward/batch_mean"] for row in self._folder.history if "reward/batch_mean" in row]
        return {
            "reward/batch_mean": mean,
            "reward/running_mean": fmean([*means, mean]),
            "train/accuracy": fmean(one.correct for one in known),
        }

    def _measured(self, batch: int) -> Row:
        every = self._config.eval_every
        if self.held is None or not every or (batch + 1) % every:
            return {}
        found = measure(self._client, self.held, self._config.seed * 1_000_003 + batch)
        return {f"eval/{name.removeprefix('eval_')}": value for name, value in found.items()}


def data_of(rollout: Rollout) -> list[Datum]:
    """What a group teaches: nothing where all advantages are 0."""
    prompt_T = list(rollout.problem.prompt)
    before_T = [0.0] * (len(prompt_T) - 1)
    data_D = []
    for sampled, judged, advantage in zip(rollout.samples_G, rollout.judged_G, rollout.advantages_G, strict=True):
        if not any(rollout.advantages_G) or judged.reward is None:
            continue
        tokens_T = [*prompt_T, *sampled.tokens]
        data_D.append(
            Datum(
                tokens=tokens_T[:-1],
                targets=tokens_T[1:],
                logprobs=[*before_T, *sampled.logprobs],
                advantages=[*before_T, *[advantage] * len(sampled.tokens)],
            )
        )
    return data_D


def shown(rollouts_P: Sequence[Rollout], batch: int) -> list[Row]:
    """The lines of samples.jsonl."""
    return [
        {
            "step": batch + 1,
            "batch_idx": batch,
            "problem_idx": index,
            "problem": rollout.problem.row["problem"],
            "ground_truth": rollout.problem.row["expected_answer"],
            "responses": [
                {
                    "text": text,
                    "reward": judged.reward,
                    "advantage": advantage,
                    "extracted_answer": judged.answer,
                }
                for text, judged, advantage in zip(
                    rollout.texts_G, rollout.judged_G, rollout.advantages_G, strict=True
                )
            ],
            "mean_reward": _mean([one.reward for one in rollout.judged_G]),
        }
        for index, rollout in enumerate(rollouts_P)
    ]


def _mean(rewards_G: Sequence[float | None]) -> float | None:
    known = [reward for reward in rewards_G if reward is not None]
    return fmean(known) if known else None


def _problems(config: TinkerRlConfig, rows: Sequence[Row], skill: Skill) -> tuple[list[Problem], list[Problem]]:
    """(to learn from, held out); no problem is in both."""
    kept = limited(rows, config.max_samples, NEEDS, config.dataset_name)
    if not config.eval_every:
        return [skill.problem(row) for row in kept], []
    held = kept[-config.eval_samples :] if len(kept) > config.eval_samples else []
    asked = {row["problem"] for row in held}
    learnt = [row for row in kept[: len(kept) - len(held)] if row["problem"] not in asked]
    if not held or not learnt:
        raise DataError(
            f"{config.dataset_name} has {len(kept)} problems; eval_samples={config.eval_samples} leaves none "
            "to train on."
        )
    return [skill.problem(row) for row in learnt], [skill.problem(row) for row in held]


def _rewards(config: TinkerRlConfig) -> RewardConfig:
    return RewardConfig(
        correct=config.correct_reward,
        wrong=config.incorrect_reward,
        no_answer=config.incorrect_reward,
        format=FormatReward(box=config.format_bonus),
    )


def _eval_settings(config: TinkerRlConfig) -> EvalSettings:
    return EvalSettings(
        every=config.eval_every,
        max_problems=config.eval_samples,
        temperature=EVAL_TEMPERATURE,
        max_tokens=config.max_tokens,
    )


def _final(row: Row) -> Row:
    """What the last row says beyond the others."""
    return {
        "final/steps": row["train/step"],
        "final/reward_mean": row["reward/running_mean"],
        "final/reward_last": row["reward/batch_mean"],
        "final/accuracy": row["train/accuracy"],
    }


def plan_of(config: TinkerRlConfig) -> str:
    """What a run does, in words."""
    return f"{config.num_epochs} epochs of {config.batch_size} problems × {config.group_size} samples per step"
