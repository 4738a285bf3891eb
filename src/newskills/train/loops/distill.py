# SPDX-License-Identifier: Apache-2.0
"""On-policy distillation: the student samples, the teacher says how likely it finds each of the student's tokens.

The divergence of a token is KL(student ‖ teacher) = E[log p_student − log p_teacher] over what the student samples, so
its gradient is that of a policy whose advantage at a token is log p_teacher − log p_student there, and nothing of what
follows (generalised knowledge distillation, https://arxiv.org/abs/2306.13649, with λ = 1 and the reverse divergence).
The loss is a mean over all sampled tokens of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar, Protocol

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, TrainingError
from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.method import MethodSettings
from newskills.train.loops.samples import Problem
from newskills.train.loops.schedule import batch_at
from newskills.train.loops.stepping import Hooks, TrainingSteps
from newskills.train.settings import Schedule
from newskills.train.verbs import Datum, SamplingParams, TrainingClient

MAX_ADVANTAGE = 20.0
"""Bound of an advantage: a token that the teacher all but excludes must not decide a step alone."""


class Teacher(Protocol):
    """A model that scores tokens of others."""

    def logprobs(self, data: Sequence[Datum]) -> list[list[float]]:
        """Return log-probabilities of the targets of each datum, in nats. Raises NewskillsError without any."""
        ...


class DistillConfig(MethodSettings, frozen=True, kw_only=True):
    """steps of batch_size prompts with `samples` each; save_every steps a checkpoint (0 = only at the end)."""

    name: ClassVar[str] = "distill"
    title: ClassVar[str] = "on-policy distillation"

    steps: int
    batch_size: int = 8
    samples: int = 4
    max_tokens: int = 256
    learning_rate: float = 2e-4
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    save_every: int = 20
    seed: int = 0

    def train(self, client: TrainingClient, data: Distillation, folder: TrainingLog, hooks: Hooks) -> bool:
        """Train on samples that a teacher scores, as `distill`."""
        return distill(client, data, self, folder, hooks)


class Distillation(Struct, frozen=True, kw_only=True):
    """What is distilled: `problems` to answer, the `teacher`, the token ids that end a reply."""

    problems: Sequence[Problem]
    teacher: Teacher
    stops: Sequence[int]


def distill(
    client: TrainingClient,
    task: Distillation,
    config: DistillConfig,
    folder: TrainingLog,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
) -> bool:
    """Train from the last checkpoint of `folder` on; return whether the run has ended (False: it was stopped).

    `kl` in the metrics is the mean of log p_student − log p_teacher over the tokens that were sampled in the step, in
    nats. Raises DataError without problems, TrainingError where teacher or loss gives no number, and what the teacher
    raises (the last checkpoint stays).
    """
    if not task.problems:
        raise DataError("There are no problems to train on.", hint="Check the filters of the training data.")

    with TrainingSteps(client, config, folder, hooks) as steps:
        for step in steps:
            data = _samples(client, task, config, step)
            scores = task.teacher.logprobs(data)
            gaps = [_gaps(datum, values) for datum, values in zip(data, scores, strict=True)]
            count = sum(map(len, gaps))
            learnt = [_weighed(datum, gap, count) for datum, gap in zip(data, gaps, strict=True)]
            output = client.forward_backward(learnt, "importance_sampling")
            adam = steps.adam(step)
            metrics = {
                "loss": output.loss,
                "kl": -fmean(value for gap in gaps for value in gap),
                "learning_rate": adam.learning_rate,
                "tokens": float(count),
                "completion_tokens": count / len(data),
                **client.optim_step(adam),
            }
            steps.done(metrics)
    return steps.ended


def _samples(client: TrainingClient, task: Distillation, config: DistillConfig, step: int) -> list[Datum]:
    """Sample replies of the student at temperature 1, with its own log-probabilities."""
    batch = batch_at(task.problems, step, config.batch_size, config.seed)
    params = SamplingParams(max_tokens=config.max_tokens, stop=task.stops, seed=config.seed * 1_000_003 + step)
    groups = client.sample([problem.prompt for problem in batch], config.samples, params)
    return [
        Datum(
            tokens=[*problem.prompt, *sampled.tokens[:-1]],
            targets=[*problem.prompt[1:], *sampled.tokens],
            logprobs=[*[0.0] * (len(problem.prompt) - 1), *sampled.logprobs],
            advantages=[*[0.0] * (len(problem.prompt) - 1), *[1.0] * len(sampled.tokens)],
        )
        for problem, group in zip(batch, groups, strict=True)
        for sampled in group
    ]


def _gaps(datum: Datum, scores: Sequence[float]) -> list[float]:
    """Return log p_teacher − log p_student of the sampled tokens, cut at ±`MAX_ADVANTAGE`.

    Raises TrainingError for a score that is no number, or where their number is another.
    """
    if len(scores) != len(datum.targets):
        raise TrainingError(
            f"The teacher gave {len(scores)} log-probabilities for {len(datum.targets)} tokens; training stopped.",
            hint="Checkpoints are kept. Its server must score token ids as they are sent.",
        )
    gaps = [
        score - own
        for score, own, counts in zip(scores, datum.logprobs or (), datum.advantages or (), strict=True)
        if counts
    ]
    if any(math.isnan(gap) for gap in gaps):
        raise TrainingError(
            "The teacher gave a log-probability that is not a number; training stopped.",
            hint="Checkpoints are kept: fix the teacher's server, then run the same command to resume.",
        )
    return [min(max(gap, -MAX_ADVANTAGE), MAX_ADVANTAGE) for gap in gaps]


def _weighed(datum: Datum, gaps: Sequence[float], count: int) -> Datum:
    start = len(datum.targets) - len(gaps)
    return msgspec.structs.replace(datum, advantages=[*[0.0] * start, *[gap / count for gap in gaps]])
