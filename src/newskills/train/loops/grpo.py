# SPDX-License-Identifier: Apache-2.0
"""Group-relative policy optimisation (GRPO, https://arxiv.org/abs/2402.03300), on policy.

For each problem a group of samples; advantage = reward − mean of the group (divided by its standard deviation where
asked for); a group whose rewards are all equal teaches nothing and is left out; the loss is a mean over all
completion tokens of the batch (as DAPO, https://arxiv.org/abs/2503.14476). A sample that could not be graded takes
no part: it is neither right nor wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.groups import Group, advantages_of, measured
from newskills.train.loops.samples import Problem, Scorer
from newskills.train.loops.schedule import Schedule, batch_at
from newskills.train.loops.stepping import Hooks, adam_at, run_steps
from newskills.train.verbs import (
    AdamParams,
    Datum,
    LossConfig,
    LossName,
    ReferenceClient,
    Sampled,
    SamplingParams,
    TrainingClient,
)

FARTHEST, MOST = 20.0, 10.0
"""Bounds of a difference of log-probabilities, and of the divergence of one token."""


class GrpoConfig(Struct, frozen=True, kw_only=True):
    """steps of batch_size problems with group_size samples each.

    iterations       updates of the weights with the samples of a step; more than one needs the clipped loss ppo
    clip_low, _high  by how much the ratio of probabilities may differ from one there
    kl               weight of the divergence from the weights that training began from
    drop_cut_off     samples that reached max_tokens teach nothing, but count in the mean of their group
    resample         rounds of further problems in place of groups whose rewards are all equal
    """

    steps: int
    batch_size: int = 8
    group_size: int = 8
    learning_rate: float = 2e-4
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    max_tokens: int = 64
    temperature: float = 1.0
    top_p: float = 1.0
    scale_by_std: bool = True
    loss: LossName = "importance_sampling"
    iterations: int = 1
    clip_low: float = 0.2
    clip_high: float = 0.2
    kl: float = 0.0
    drop_cut_off: bool = False
    resample: int = 0
    save_every: int = 10
    seed: int = 0

    def adam(self, step: int) -> AdamParams:
        return adam_at(self, step)

    def divisor(self, tokens: int) -> int:
        """What the loss over so many completion tokens is divided by."""
        return tokens

    def check(self) -> None:
        """Raises ConfigError."""
        if self.iterations > 1 and self.loss == "importance_sampling":
            raise ConfigError("More than one iteration needs a clipped loss.", hint="Set ++loss=ppo.")


def grpo(
    client: TrainingClient,
    problems: Sequence[Problem],
    config: GrpoConfig,
    folder: TrainingLog,
    scorer: Scorer,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
) -> bool:
    """Goes on from the last checkpoint of `folder`; returns whether all steps are done.

    Raises DataError without problems, ConfigError (settings; ++kl without reference weights), TrainingError where the
    loss is no number or nothing can be graded.
    """
    if not problems:
        raise DataError("There are no problems to train on.", hint="Check the filters of the training data.")

    config.check()
    if config.kl and not isinstance(client, ReferenceClient):
        raise ConfigError(
            "This trainer has no reference weights to compute a KL divergence.", hint="Leave out ++kl."
        )

    def step_of(step: int) -> dict[str, float]:
        groups = _groups(client, problems, config, step, scorer)
        metrics = _learn(client, groups, config, step) | measured(groups)
        folder.groups(groups, step + 1)
        return metrics

    return run_steps(client, config, folder, step_of, hooks)


def _groups(
    client: TrainingClient, problems: Sequence[Problem], config: GrpoConfig, step: int, scorer: Scorer
) -> list[Group]:
    """The groups of a step: those that teach nothing give way to some of further problems (as DAPO samples)."""
    groups = _roll_out(client, batch_at(problems, step, config.batch_size, config.seed), config, step, scorer)
    for extra in range(1, config.resample + 1):
        places = [place for place, group in enumerate(groups) if not any(group.advantages)]
        if not places:
            break
        # Steps after the last one of the run, so that no step trains on what another was given.
        later = config.steps * extra + step
        batch = batch_at(problems, later, config.batch_size, config.seed)[: len(places)]
        fresh = [
            candidate for candidate in _roll_out(client, batch, config, later, scorer) if any(candidate.advantages)
        ]
        for place, group in zip(places, fresh, strict=False):
            groups[place] = group
    return groups


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
    texts = [[scorer.text(sample.tokens) for sample in group] for group in sampled]
    judged = scorer.judge(
        [
            (problem.row, text, sample.stop_reason)
            for problem, group, answers in zip(batch, sampled, texts, strict=True)
            for sample, text in zip(group, answers, strict=True)
        ]
    )
    size = config.group_size
    parts = [judged[at : at + size] for at in range(0, len(judged), size)]
    return [
        Group(
            problem,
            answers,
            group,
            part,
            advantages_of([sample.reward for sample in part], by_std=config.scale_by_std),
        )
        for problem, group, answers, part in zip(batch, sampled, texts, parts, strict=True)
    ]


def _learn(client: TrainingClient, groups: Sequence[Group], config: GrpoConfig, step: int) -> dict[str, float]:
    adam = config.adam(step)
    rows = [
        (group.problem, sample, advantage)
        for group in groups
        for sample, advantage in zip(group.samples, group.advantages, strict=True)
        if not (config.drop_cut_off and sample.stop_reason == "length")
    ]
    divisor = config.divisor(sum(len(sample.tokens) for _, sample, _ in rows))
    data = [
        _datum(problem, sample, advantage / divisor)
        for problem, sample, advantage in rows
        if advantage or config.kl
    ]
    metrics = {"learning_rate": adam.learning_rate, "tokens": float(sum(len(datum.tokens) for datum in data))}
    if not data:
        return {"loss": 0.0, "grad_norm": 0.0, **metrics}
    if config.kl and isinstance(client, ReferenceClient):
        starts = [len(problem.prompt) - 1 for problem, _, _ in rows]
        data, metrics["kl"] = _held_back(client, data, starts, config.kl / divisor)
    bounds = LossConfig(clip_low_threshold=1 - config.clip_low, clip_high_threshold=1 + config.clip_high)
    for _ in range(config.iterations):
        output = client.forward_backward(data, config.loss, bounds if config.loss == "ppo" else None)
        changed = client.optim_step(adam)
    return {"loss": output.loss, **metrics, **changed}


def _held_back(
    client: ReferenceClient, data: Sequence[Datum], starts: Sequence[int], weight: float
) -> tuple[list[Datum], float]:
    """The data with the divergence from the reference weights folded into their advantages, and its mean.

    `starts`: where each completion begins. With d = log p_ref − log p, an advantage of d has the gradient of the
    reverse divergence, without bias (as https://arxiv.org/abs/2512.02556 corrects k3); its mean is estimated by
    k3 = exp(d) − d − 1 (http://joschu.net/blog/kl-approx.html), cut at |d| = 20 and k3 = 10.
    """
    values: list[float] = []
    penalised = []
    for datum, start, reference in zip(data, starts, client.reference_logprobs(data), strict=True):
        advantages, own = list(datum.advantages or ()), datum.logprobs or ()
        for place in range(start, len(advantages)):
            gap = min(max(reference[place] - own[place], -FARTHEST), FARTHEST)
            values.append(min(math.exp(gap) - gap - 1, MOST))
            advantages[place] += weight * gap
        penalised.append(msgspec.structs.replace(datum, advantages=advantages))
    return penalised, fmean(values)


def _datum(problem: Problem, sampled: Sampled, advantage: float) -> Datum:
    tokens = [*problem.prompt, *sampled.tokens]
    before = [0.0] * (len(problem.prompt) - 1)
    return Datum(
        tokens=tokens[:-1],
        targets=tokens[1:],
        logprobs=[*before, *sampled.logprobs],
        advantages=[*before, *[advantage] * len(sampled.tokens)],
    )
