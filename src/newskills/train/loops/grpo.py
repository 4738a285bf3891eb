# SPDX-License-Identifier: Apache-2.0
"""Group-relative policy optimisation (GRPO, https://arxiv.org/abs/2402.03300), on policy.

For each problem a group of samples; advantage = reward − mean of the group (divided by its standard deviation where
asked for); a group whose rewards are all equal teaches nothing and is left out; the loss is a mean over all
completion tokens of the batch (as DAPO, https://arxiv.org/abs/2503.14476). A sample that could not be graded takes
no part: it is neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.schedule import Schedule, batch_at
from newskills.train.loops.stepping import Hooks, adam_at, run_steps
from newskills.train.verbs import Datum, LossName, Sampled, SamplingParams, TrainingClient


class GrpoConfig(Struct, frozen=True, kw_only=True):
    """steps of batch_size problems with group_size samples each."""

    steps: int
    batch_size: int = 8
    group_size: int = 8
    learning_rate: float = 2e-4
    schedule: Schedule = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    max_tokens: int = 64
    temperature: float = 1.0
    top_p: float = 1.0
    scale_by_std: bool = True
    loss: LossName = "importance_sampling"
    save_every: int = 10
    seed: int = 0


class Group(Struct, frozen=True):
    problem: Problem
    texts: list[str]
    samples: list[Sampled]
    judged: list[Judged]
    advantages: list[float]


def grpo(
    client: TrainingClient,
    problems: Sequence[Problem],
    config: GrpoConfig,
    folder: TrainingFolder,
    scorer: Scorer,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
) -> bool:
    """Goes on from the last checkpoint of `folder`; returns whether all steps are done.

    Raises DataError without problems, TrainingError where the loss is no number or nothing can be graded.
    """
    if not problems:
        raise DataError("There are no problems to train on.", hint="Look at the filters of the training data.")

    def step_of(step: int) -> dict[str, float]:
        batch = batch_at(problems, step, config.batch_size, config.seed)
        groups = _roll_out(client, batch, config, step, scorer)
        metrics = _learn(client, groups, config, step) | _measured(groups)
        folder.samples(_shown(groups, step + 1))
        return metrics

    return run_steps(client, config, folder, step_of, hooks)


def advantages_of(rewards: Sequence[float | None], *, by_std: bool) -> list[float]:
    """reward − mean, by the standard deviation where asked for; 0 for what was not graded, or if all are equal."""
    known = [reward for reward in rewards if reward is not None]
    if len(set(known)) < 2:
        return [0.0] * len(rewards)
    mean, scale = fmean(known), (pstdev(known) + 1e-4 if by_std else 1.0)
    return [0.0 if reward is None else (reward - mean) / scale for reward in rewards]


def _roll_out(
    client: TrainingClient, batch: Sequence[Problem], config: GrpoConfig, step: int, scorer: Scorer
) -> list[Group]:
    params = SamplingParams(
        max_tokens=config.max_tokens,
        stop=scorer.stops,
        temperature=config.temperature,
        top_p=config.top_p,
        seed=config.seed * 1_000_003 + step,
    )
    sampled = client.sample([problem.prompt for problem in batch], config.group_size, params)
    texts = [[scorer.text(one.tokens) for one in group] for group in sampled]
    judged = scorer.judge(
        [
            (problem.row, text, one.stop_reason)
            for problem, group, said in zip(batch, sampled, texts, strict=True)
            for one, text in zip(group, said, strict=True)
        ]
    )
    size = config.group_size
    parts = [judged[at : at + size] for at in range(0, len(judged), size)]
    return [
        Group(
            problem,
            said,
            group,
            part,
            advantages_of([one.reward for one in part], by_std=config.scale_by_std),
        )
        for problem, group, said, part in zip(batch, sampled, texts, parts, strict=True)
    ]


def _learn(client: TrainingClient, groups: Sequence[Group], config: GrpoConfig, step: int) -> dict[str, float]:
    adam = adam_at(config, step)
    rate = adam.learning_rate
    tokens = sum(len(one.tokens) for group in groups for one in group.samples)
    data = [
        _datum(group.problem, one, advantage / tokens)
        for group in groups
        for one, advantage in zip(group.samples, group.advantages, strict=True)
        if advantage
    ]
    if not data:
        return {"loss": 0.0, "learning_rate": rate, "tokens": 0.0, "grad_norm": 0.0}
    output = client.forward_backward(data, config.loss)
    changed = client.optim_step(adam)
    learned = sum(len(datum.tokens) for datum in data)
    return {"loss": output.loss, "learning_rate": rate, "tokens": float(learned), **changed}


def _datum(problem: Problem, sampled: Sampled, advantage: float) -> Datum:
    tokens = [*problem.prompt, *sampled.tokens]
    before = [0.0] * (len(problem.prompt) - 1)
    return Datum(
        tokens=tokens[:-1],
        targets=tokens[1:],
        logprobs=[*before, *sampled.logprobs],
        advantages=[*before, *[advantage] * len(sampled.tokens)],
    )


def _measured(groups: Sequence[Group]) -> dict[str, float]:
    """Rewards over what was graded; how much was not; how many groups taught something."""
    judged = [one for group in groups for one in group.judged]
    graded = [one for one in judged if one.reward is not None]
    samples = [one for group in groups for one in group.samples]
    return {
        "reward": fmean(one.reward or 0.0 for one in graded),
        "correct": fmean(one.correct for one in graded),
        "unscored": float(len(judged) - len(graded)),
        "completion_tokens": fmean(len(one.tokens) for one in samples),
        "cut_off": fmean(one.stop_reason == "length" for one in samples),
        "groups_used": float(sum(any(group.advantages) for group in groups)),
    }


def _shown(groups: Sequence[Group], step: int) -> list[Row]:
    return [
        {
            "step": step,
            "problem_idx": index,
            "problem": group.problem.row.get("problem") or group.problem.row.get("question"),
            "ground_truth": group.problem.row.get("expected_answer"),
            "responses": [
                {
                    "text": text,
                    "reward": one.reward,
                    "advantage": advantage,
                    "extracted_answer": one.answer,
                    "stop_reason": sampled.stop_reason,
                }
                for text, one, advantage, sampled in zip(
                    group.texts, group.judged, group.advantages, group.samples, strict=True
                )
            ],
        }
        for index, group in enumerate(groups)
    ]
