# SPDX-License-Identifier: Apache-2.0
"""Group-relative policy optimisation (GRPO, https://arxiv.org/abs/2402.03300), on policy.

For each problem a group of samples; advantage = reward − mean of the group (divided by its standard deviation where
asked for); a group whose rewards are all equal teaches nothing and is left out; the loss is a mean over all
completion tokens of the batch (as DAPO, https://arxiv.org/abs/2503.14476). A sample that could not be graded, or that
its environment lost, takes no part: it is neither right nor wrong.

Where a problem takes several turns, importance weights correct the log-probabilities of the sampler, truncated at
`importance_cap` (https://fengyao.notion.site/off-policy-rl). This file is the whole loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.train.loops.draws import DrawConfig, ProblemDraws, differ
from newskills.train.loops.folder import TrainingLog
from newskills.train.loops.groups import (
    Group,
    advantages_of,
    grouped,
    measured,
    measured_draws,
    shuffled,
    weighted_advantages,
)
from newskills.train.loops.method import MethodSettings
from newskills.train.loops.remarks import LossRemark, flat_remark
from newskills.train.loops.samples import Problem, Rollout, Scorer
from newskills.train.loops.signal import StepSignal
from newskills.train.loops.stepping import Hooks, TrainingSteps
from newskills.train.loops.traces import TrainingSequence, held_back, policy_metrics, sampler_gap, traces
from newskills.train.settings import Baseline, Control, Schedule
from newskills.train.verbs import (
    LossConfig,
    LossName,
    ReferenceClient,
    SamplingClient,
    SamplingParams,
    TrainingClient,
)


class RewardedProblems(Struct, frozen=True):
    """`problems` to solve, and the `scorer` that makes rewards of their samples."""

    problems: Sequence[Problem]
    scorer: Scorer


class GrpoConfig(MethodSettings, frozen=True, kw_only=True):
    """steps of batch_size problems with group_size samples each.

    baseline         what is taken from the rewards of a group: their mean, or one in which unlikely samples weigh more
                     (`loops.groups.weighted_advantages`), which no deviation divides
    iterations       updates of the weights with the samples of a step; more than one needs the clipped loss ppo
    clip_low, _high  by how much the ratio of probabilities may differ from one there
    kl               weight of the divergence from the weights that training began from
    drop_cut_off     samples that reached max_tokens teach nothing, but count in the mean of their group
    resample         rounds of further problems in place of groups whose rewards are all equal
    put_aside        steps for which a problem rests whose rewards were all equal, doubled each time; 0 = never
    weights          how often problems of each source are drawn, where there are several
    importance_cap   largest importance weight of a token of rollouts with several turns; 0 = none
    turn_weight      weight of the rewards that an environment gives for single turns
    min_signal       groups are added to a step until its gradient is expected to be so much signal (`loops.signal`)
    max_groups       most groups of a step
    control          shuffled: advantages of shuffled rewards, so that all that changes is chance
    """

    name: ClassVar[str] = "grpo"
    title: ClassVar[str] = "GRPO"

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
    baseline: Baseline = "mean"
    loss: LossName = "importance_sampling"
    iterations: int = 1
    clip_low: float = 0.2
    clip_high: float = 0.2
    kl: float = 0.0
    drop_cut_off: bool = False
    resample: int = 0
    put_aside: int = 0
    weights: dict[str, float] = {}  # noqa: RUF012 - copied
    importance_cap: float = 2.0
    turn_weight: float = 0.0
    min_signal: float = 0.0
    max_groups: int = 64
    control: Control = "none"
    save_every: int = 10
    seed: int = 0

    def train(self, client: TrainingClient, data: RewardedProblems, folder: TrainingLog, hooks: Hooks) -> bool:
        """Train on rewarded samples, as `grpo`."""
        return grpo(client, data.problems, self, folder, data.scorer, hooks)

    def advantages(self, rewards: Sequence[float | None], rollouts: Sequence[Rollout] = ()) -> list[float]:
        """Return the advantage of each sample of a group; 0 for what was not graded."""
        if self.baseline == "weighted":
            return weighted_advantages(rewards, rollouts)
        return advantages_of(rewards, by_std=self.scale_by_std)

    def divisor(self, tokens: int, samples: int) -> int:
        """Return the number that the loss over so many completion tokens of so many samples is divided by."""
        return tokens

    def counts(self, rollout: Rollout) -> bool:
        """Return whether anything is learnt from it."""
        return not rollout.lost and not (self.drop_cut_off and rollout.is_cut_off)

    def policy_loss(self, *, several_turns: bool) -> tuple[LossName, LossConfig]:
        """Return the loss, its bounds and the temperature of the samples. Where a problem has several turns, weights
        are truncated: min(p / q, cap), held fixed, · log p · advantage is the loss cispo without a lower bound."""
        plain = LossConfig(temperature=None if self.temperature == 1 else self.temperature)
        if self.loss in ("ppo", "gspo"):
            low, high = 1 - self.clip_low, 1 + self.clip_high
            return self.loss, msgspec.structs.replace(plain, clip_low_threshold=low, clip_high_threshold=high)
        if several_turns and self.importance_cap:
            cap = self.importance_cap
            return "cispo", msgspec.structs.replace(plain, clip_low_threshold=0.0, clip_high_threshold=cap)
        return self.loss, plain

    def check(self) -> None:
        """Raise ConfigError for several iterations with a loss that is not clipped, `importance_sampling`."""
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
    """Train from the last checkpoint of `folder` on; return whether the run has ended (False: it was stopped).

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
    source = StepGroups(problems, config, folder, scorer, hooks.remark)
    source.signal.check(client)
    loss, bounds = config.policy_loss(several_turns=scorer.several_turns)
    cap = config.importance_cap if scorer.several_turns else 0.0

    with TrainingSteps(client, config, folder, hooks) as steps:
        for step in steps:
            drawn = source.drawn(client, step)
            groups = [group for group in drawn if not group.rejected]
            learnt, divisor = sequences_of(groups, config)
            adam = steps.adam(step)
            tokens = float(sum(len(sequence.datum.tokens) for sequence in learnt))
            metrics = {"learning_rate": adam.learning_rate, "tokens": tokens}
            if not learnt:
                metrics = {"loss": 0.0, "grad_norm": 0.0, **metrics}
            else:
                if config.kl and isinstance(client, ReferenceClient):
                    learnt, metrics["kl"] = held_back(client, learnt, config.kl / divisor, config.temperature)
                metrics |= source.signal.kept_gap(client, learnt)
                output, of_gradient = source.signal.backward(client, learnt, len(groups), loss, bounds)
                metrics |= of_gradient | sampler_gap(learnt, output, cap)
                changed = client.optim_step(adam)
                for _ in range(1, config.iterations):
                    output = client.forward_backward([sequence.datum for sequence in learnt], loss, bounds)
                    changed = client.optim_step(adam)
                metrics = {
                    "loss": output.loss,
                    **metrics,
                    **changed,
                    **policy_metrics(learnt, output, loss, bounds),
                }
            metrics |= measured(groups)
            folder.groups(drawn, step + 1)
            steps.done(metrics | source.measured(drawn))
    return steps.ended


def sequences_of(groups: Sequence[Group], config: GrpoConfig) -> tuple[list[TrainingSequence], int]:
    """Return the sequences to learn from, with their share of the loss as advantages, and what the loss is divided
    by."""
    rows = [
        (number, rollout, advantages)
        for number, group in enumerate(groups)
        for rollout, advantages in zip(group.rollouts, group.advantages, strict=True)
        if config.counts(rollout)
    ]
    divisor = config.divisor(sum(rollout.tokens for _, rollout, _ in rows), len(rows))
    learnt = [
        msgspec.structs.replace(sequence, group=number)
        for number, rollout, advantages in rows
        if any(advantages) or config.kl
        for sequence in traces(rollout, [advantage / divisor for advantage in advantages])
    ]
    return learnt, divisor


class StepGroups:
    """The groups of each step: problems are drawn, solved and rewarded, and the user is told what should be changed."""

    def __init__(
        self,
        problems: Sequence[Problem],
        config: GrpoConfig,
        folder: TrainingLog,
        scorer: Scorer,
        remark: Callable[[str], None],
    ) -> None:
        """Prepare the steps on `problems`. Raises ConfigError for weights that name no source."""
        self._problems, self._config, self._scorer = problems, config, scorer
        self._folder, self._remark = folder, remark
        self._losses = LossRemark(remark)
        self.signal = StepSignal(config, folder, remark)
        self._draws = ProblemDraws(
            problems,
            DrawConfig(
                size=config.batch_size, seed=config.seed, put_aside=config.put_aside, weights=config.weights
            ),
        )

    def drawn(self, client: SamplingClient, step: int) -> list[Group]:
        """Return all groups of a step: those that teach nothing give way to some of further problems (as DAPO samples).

        Raises what the client and the scorer raise; DataError for problems that are not those of earlier steps.
        """
        if remark := flat_remark(self._folder, step):
            self._remark(remark)
        config = self._config
        changes = config.resample or config.put_aside or config.min_signal
        self._draws.catch_up(step, self._folder.sampled() if changes else ())
        drawn = self._rolled(client, step, self._draws.batch(step), 0)
        wanted = self.signal.wanted()
        for number in range(1, config.resample + 1):
            flat = [at for at, group in enumerate(drawn) if not group.teaches and not group.rejected]
            places = self._draws.further([place for at in flat if (place := drawn[at].place) is not None])
            if not places:
                break
            replaced = iter(flat)
            for group in self._rolled(client, step, places, number):
                at = next(replaced) if group.teaches else None
                if at is not None:
                    drawn[at] = msgspec.structs.replace(drawn[at], rejected=True)
                drawn.append(group if group.teaches else msgspec.structs.replace(group, rejected=True))
        drawn += self._more(client, step, [group for group in drawn if not group.rejected], wanted)
        self._losses.tell(drawn)
        return drawn

    def _more(self, client: SamplingClient, step: int, groups: Sequence[Group], wanted: int) -> list[Group]:
        """Return further groups until there are as many as are `wanted`, of the same sources as `groups`."""
        sources = [group.place for group in groups if group.place is not None]
        missing = max(0, wanted - len(groups)) if sources else 0
        places = self._draws.further([sources[at % len(sources)] for at in range(missing)])
        if places:
            return self._rolled(client, step, places, self._config.resample + 1)
        return []

    def measured(self, drawn: Sequence[Group]) -> dict[str, float]:
        """Return what a step has drawn, beside the metrics of what is learnt from."""
        return (measured_draws(drawn) if self._config.resample else {}) | self._draws.measured()

    def _rolled(self, client: SamplingClient, step: int, places: Sequence[int], number: int) -> list[Group]:
        config = self._config
        # Seeds of further rounds are those of steps after the last one of the run.
        seed = config.seed * 1_000_003 + config.steps * number + step
        groups = roll_out(client, [self._problems[place] for place in places], config, seed, self._scorer)
        for group, place in zip(groups, places, strict=True):
            self._draws.note(place, differ([judgement.reward for judgement in group.judged]))
        return [
            msgspec.structs.replace(group, place=place, round=number)
            for group, place in zip(groups, places, strict=True)
        ]


def roll_out(
    client: SamplingClient, batch: Sequence[Problem], config: GrpoConfig, seed: int, scorer: Scorer
) -> list[Group]:
    """Sample and grade the groups of some problems. Raises what the client and `scorer` raise; TrainingError where none
    of the samples can be graded."""
    params = SamplingParams(
        max_tokens=config.max_tokens,
        stop=scorer.stops,
        temperature=config.temperature,
        top_p=config.top_p,
        seed=seed,
        logprob_temperature=config.temperature,
    )
    rolled = scorer.rollouts(client, batch, config.group_size, params)
    judged = scorer.judge([rollout for group in rolled for rollout in group])
    size = config.group_size
    advantages = config.advantages if config.control == "none" else shuffled(config.advantages, seed)
    parts = [judged[at : at + size] for at in range(0, len(judged), size)]
    return [
        grouped(problem, group, part, advantages, turn_weight=config.turn_weight)
        for problem, group, part in zip(batch, rolled, parts, strict=True)
    ]
