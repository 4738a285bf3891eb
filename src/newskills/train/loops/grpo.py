# SPDX-License-Identifier: Apache-2.0
"""Group-relative policy optimisation (GRPO, https://arxiv.org/abs/2402.03300), on policy.

For each problem a group of samples; advantage = reward − mean of the group (divided by its standard deviation where
asked for); a group whose rewards are all equal teaches nothing and is left out; the loss is a mean over all
completion tokens of the batch (as DAPO, https://arxiv.org/abs/2503.14476). A sample that could not be graded, or that
its environment lost, takes no part: it is neither right nor wrong.

Where a problem takes several turns, importance weights correct the log-probabilities of the sampler, truncated at
`importance_cap` (https://fengyao.notion.site/off-policy-rl).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.groups import Group, grouped, measured
from newskills.train.loops.samples import Problem, Rollout, Scorer
from newskills.train.loops.schedule import Schedule, batch_at
from newskills.train.loops.stepping import Hooks, adam_at, run_steps
from newskills.train.loops.traces import TrainingSequence, sampler_gap, traces
from newskills.train.verbs import (
    AdamParams,
    LossConfig,
    LossName,
    ReferenceClient,
    SamplingClient,
    SamplingParams,
    TrainingClient,
)

FARTHEST, MOST = 20.0, 10.0
"""Bounds of a difference of log-probabilities, and of the divergence of one token."""
FLAT = 20
"""So many steps in a row whose groups all have equal rewards are told: nothing is learnt."""


class GrpoConfig(Struct, frozen=True, kw_only=True):
    """steps of batch_size problems with group_size samples each.

    iterations       updates of the weights with the samples of a step; more than one needs the clipped loss ppo
    clip_low, _high  by how much the ratio of probabilities may differ from one there
    kl               weight of the divergence from the weights that training began from
    drop_cut_off     samples that reached max_tokens teach nothing, but count in the mean of their group
    resample         rounds of further problems in place of groups whose rewards are all equal
    importance_cap   largest importance weight of a token of rollouts with several turns; 0 = none
    turn_weight      weight of the rewards that an environment gives for single turns
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
    importance_cap: float = 2.0
    turn_weight: float = 0.0
    save_every: int = 10
    seed: int = 0

    def adam(self, step: int) -> AdamParams:
        return adam_at(self, step)

    def divisor(self, tokens: int) -> int:
        """What the loss over so many completion tokens is divided by."""
        return tokens

    def counts(self, rollout: Rollout) -> bool:
        """Whether anything is learnt from it."""
        return not rollout.lost and not (self.drop_cut_off and rollout.finish_reason == "length")

    def check(self) -> None:
        """Raises ConfigError."""
        if self.iterations > 1 and self.loss == "importance_sampling":
            raise ConfigError(
                "More than one iteration needs a clipped loss.", hint="Set ++loss=ppo or ++loss=gspo."
            )


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
        if remark := _without_spread(folder, step):
            hooks.remark(remark)
        groups = _groups(client, problems, config, step, scorer)
        cap = config.importance_cap if scorer.roll_out is not None else None
        metrics = _learn(client, groups, config, step, cap) | measured(groups)
        folder.groups(groups, step + 1)
        return metrics

    return run_steps(client, config, folder, step_of, hooks)


def _without_spread(folder: TrainingLog, step: int) -> str:
    """What to change where the last `FLAT` steps have taught nothing; told once in so many steps."""
    if step == 0 or step % FLAT:
        return ""
    used, correct = (dict(folder.scores(name)) for name in ("groups_used", "correct"))
    last = range(step - FLAT + 1, step + 1)
    if any(used.get(number, 1.0) for number in last):
        return ""
    share = fmean(correct.get(number, 0.0) for number in last)
    change = "harder problems" if share > 0.5 else "easier problems, or solved ones first (ns sft)"
    return (
        f"In the last {FLAT} steps all rewards of each group were equal ({share:.0%} correct), so nothing was learnt. "
        f"Train on {change}; a larger ++group_size, a higher ++temperature and ++resample=2 also help."
    )


def _groups(
    client: TrainingClient, problems: Sequence[Problem], config: GrpoConfig, step: int, scorer: Scorer
) -> list[Group]:
    """The groups of a step: those that teach nothing give way to some of further problems (as DAPO samples)."""
    groups = roll_out(client, batch_at(problems, step, config.batch_size, config.seed), config, step, scorer)
    for extra in range(1, config.resample + 1):
        places = [place for place, group in enumerate(groups) if not group.teaches]
        if not places:
            break
        # Steps after the last one of the run, so that no step trains on what another was given.
        later = config.steps * extra + step
        batch = batch_at(problems, later, config.batch_size, config.seed)[: len(places)]
        fresh = [candidate for candidate in roll_out(client, batch, config, later, scorer) if candidate.teaches]
        for place, group in zip(places, fresh, strict=False):
            groups[place] = group
    return groups


def roll_out(
    client: SamplingClient, batch: Sequence[Problem], config: GrpoConfig, step: int, scorer: Scorer
) -> list[Group]:
    """The groups of a step. Raises what the client and `scorer` raise."""
    params = SamplingParams(
        max_tokens=config.max_tokens,
        stop=scorer.stops,
        temperature=config.temperature,
        top_p=config.top_p,
        seed=config.seed * 1_000_003 + step,
    )
    rolled = scorer.rollouts(client, batch, config.group_size, params)
    judged = scorer.judge([rollout for group in rolled for rollout in group])
    size = config.group_size
    parts = [judged[at : at + size] for at in range(0, len(judged), size)]
    return [
        grouped(problem, group, part, by_std=config.scale_by_std, turn_weight=config.turn_weight)
        for problem, group, part in zip(batch, rolled, parts, strict=True)
    ]


def _learn(
    client: TrainingClient, groups: Sequence[Group], config: GrpoConfig, step: int, cap: float | None
) -> dict[str, float]:
    """`cap`: largest importance weight of rollouts, 0 = as the loss has it; None: problems take one reply."""
    adam = config.adam(step)
    rows = [
        (rollout, advantages)
        for group in groups
        for rollout, advantages in zip(group.rollouts, group.advantages, strict=True)
        if config.counts(rollout)
    ]
    divisor = config.divisor(sum(rollout.tokens for rollout, _ in rows))
    learnt = [
        trace
        for rollout, advantages in rows
        if any(advantages) or config.kl
        for trace in traces(rollout, [advantage / divisor for advantage in advantages])
    ]
    metrics = {
        "learning_rate": adam.learning_rate,
        "tokens": float(sum(len(trace.datum.tokens) for trace in learnt)),
    }
    if not learnt:
        return {"loss": 0.0, "grad_norm": 0.0, **metrics}
    if config.kl and isinstance(client, ReferenceClient):
        learnt, metrics["kl"] = held_back(client, learnt, config.kl / divisor)
    loss, bounds = config.loss, None
    if loss in ("ppo", "gspo"):
        bounds = LossConfig(clip_low_threshold=1 - config.clip_low, clip_high_threshold=1 + config.clip_high)
    elif cap:
        # min(p / q, cap), held fixed, · log p · advantage: this is the loss cispo without a lower bound.
        loss, bounds = "cispo", LossConfig(clip_low_threshold=0.0, clip_high_threshold=cap)
    data = [trace.datum for trace in learnt]
    for iteration in range(config.iterations):
        output = client.forward_backward(data, loss, bounds)
        if iteration == 0 and cap is not None:
            metrics |= sampler_gap(learnt, output, cap)
        changed = client.optim_step(adam)
    return {"loss": output.loss, **metrics, **changed}


def held_back(
    client: ReferenceClient, learnt: Sequence[TrainingSequence], weight: float
) -> tuple[list[TrainingSequence], float]:
    """The data with the divergence from the reference weights folded into their advantages, and its mean.

    With d = log p_ref − log p, an advantage of d has the gradient of the
    reverse divergence, without bias (as https://arxiv.org/abs/2512.02556 corrects k3); its mean is estimated by
    k3 = exp(d) − d − 1 (http://joschu.net/blog/kl-approx.html), cut at |d| = 20 and k3 = 10.
    """
    values: list[float] = []
    penalised = []
    references = client.reference_logprobs([trace.datum for trace in learnt])
    for trace, reference in zip(learnt, references, strict=True):
        datum = trace.datum
        advantages, own = list(datum.advantages or ()), datum.logprobs or ()
        for place in trace.written:
            gap = min(max(reference[place] - own[place], -FARTHEST), FARTHEST)
            values.append(min(math.exp(gap) - gap - 1, MOST))
            advantages[place] += weight * gap
        penalised.append(TrainingSequence(msgspec.structs.replace(datum, advantages=advantages), trace.written))
    return penalised, fmean(values)
