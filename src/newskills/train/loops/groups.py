# SPDX-License-Identifier: Apache-2.0
"""The samples of a problem as a group: their advantages, what is measured of them, what is kept of them."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from msgspec import Struct

from newskills.base.records import Row
from newskills.train.loops.samples import Judged, Problem, Rollout

DIFFICULTY = ("level", "difficulty")
"""Fields of a problem by which the share of right answers is told apart."""


Advantages = Callable[[Sequence[float | None], Sequence[Rollout]], list[float]]
"""Rewards of a group (None: not graded), and what they are for → its advantages."""
NO_LENGTH = 1e-6
"""Added to the length of each sample's gradient: all may be certain."""


class Group(Struct, frozen=True):
    """`advantages` of each turn of each rollout.

    place     where the problem stands among those of the run
    round     0, or the how manyth time further problems were drawn in the same step
    rejected  another group is learnt from in its place, as the rewards of this one are all equal
    """

    problem: Problem
    rollouts: list[Rollout]
    judged: list[Judged]
    advantages: list[list[float]]
    place: int | None = None
    round: int = 0
    rejected: bool = False

    @property
    def teaches(self) -> bool:
        """Whether any reward differs from the others."""
        return any(map(any, self.advantages))


def grouped(
    problem: Problem,
    rollouts: list[Rollout],
    judged: list[Judged],
    advantages_of_group: Advantages,
    *,
    turn_weight: float = 0.0,
) -> Group:
    """Return rollouts of one problem with their advantages: that of the reward, and `turn_weight` times that of the
    turn's own reward among the rollouts that have such a turn (https://arxiv.org/abs/2505.11821).
    """
    outcomes = advantages_of_group([judgement.reward for judgement in judged], rollouts)
    advantages = [[value] * len(rollout.turns) for value, rollout in zip(outcomes, rollouts, strict=True)]
    scored = [judgement.reward is not None for judgement in judged]
    for turn in range(max(map(len, advantages), default=0) if turn_weight else 0):
        rewards = [
            rollout.rewards[turn] if graded and turn < len(rollout.rewards) else None
            for rollout, graded in zip(rollouts, scored, strict=True)
        ]
        for values, value in zip(advantages, advantages_of_group(rewards, rollouts), strict=True):
            if turn < len(values):
                values[turn] += turn_weight * value
    return Group(problem, rollouts, judged, advantages)


def advantages_of(rewards: Sequence[float | None], *, by_std: bool) -> list[float]:
    """Return reward − mean, by the standard deviation of the sample where asked for; 0 for what was not graded, or if
    all are equal."""
    graded = [reward for reward in rewards if reward is not None]
    if len(set(graded)) < 2:
        return [0.0] * len(rewards)
    mean, scale = fmean(graded), (stdev(graded) + 1e-4 if by_std else 1.0)
    return [0.0 if reward is None else (reward - mean) / scale for reward in rewards]


def weighted_advantages(rewards: Sequence[float | None], rollouts: Sequence[Rollout]) -> list[float]:
    """Return reward − mean weighted by how long each sample's gradient is expected to be; 0 for what was not graded, or
    if all are equal.

    Of all baselines of a group, this one gives the policy gradient the least variance (https://arxiv.org/abs/1301.2315,
    https://arxiv.org/abs/2505.23585). Unlikely samples have long gradients. Where wrong answers are unlikely ones and
    right ones are not, the baseline is near the reward of wrong answers: the model learns what is right more than it is
    pushed away from each wrong answer in a direction of its own, which is most of the noise of a small group. Dividing
    by the deviation would give the groups with the fewest right or wrong answers the most weight again.
    """
    graded = [
        (reward, gradient_length(rollout))
        for reward, rollout in zip(rewards, rollouts, strict=True)
        if reward is not None
    ]
    values = [reward for reward, _ in graded]
    if len(set(values)) < 2:
        return [0.0] * len(rewards)
    baseline = math.fsum(reward * length for reward, length in graded) / math.fsum(length for _, length in graded)
    return [0.0 if reward is None else reward - baseline for reward in rewards]


def gradient_length(rollout: Rollout) -> float:
    """Return the squared length that the gradient of a rollout's log-probability has at the logits, as far as the
    sampled tokens tell: (1 − p)² of each."""
    logprobs = (logprob for turn in rollout.turns for logprob in turn.sampled.logprobs)
    return NO_LENGTH + math.fsum(math.expm1(min(logprob, 0.0)) ** 2 for logprob in logprobs)


def left_out_advantages(rewards: Sequence[float | None]) -> list[float]:
    """Return reward − mean of the others; 0 for what was not graded, or alone in its group."""
    graded = [reward for reward in rewards if reward is not None]
    others = len(graded) - 1
    return [
        0.0 if reward is None or not others else reward - (sum(graded) - reward) / others for reward in rewards
    ]


def shuffled(advantages: Advantages, seed: int) -> Advantages:
    """Return advantages of rewards that are shuffled within each group: what a training does without any signal."""
    draw = random.Random(f"{seed}-shuffled")  # noqa: S311 - no secret

    def of_shuffled(rewards: Sequence[float | None], rollouts: Sequence[Rollout]) -> list[float]:
        graded = [reward for reward in rewards if reward is not None]
        draw.shuffle(graded)
        order = iter(graded)
        return advantages([None if reward is None else next(order) for reward in rewards], rollouts)

    return of_shuffled


def measured(groups: Sequence[Group]) -> dict[str, float]:
    """Return the rewards over what was graded; how much was not; how many groups taught something."""
    return {**_measured(groups), **_by_component(groups), **_by_field(groups)}


def measured_draws(groups: Sequence[Group]) -> dict[str, float]:
    """Return, of all groups that a step has drawn, replaced ones included, the share of correct answers to
    problems as they come, which that of the groups that are learnt from is not.
    """
    graded = [sample for group in groups for sample in group.judged if sample.reward is not None]
    return {
        "groups_drawn": float(len(groups)),
        "groups_rejected": float(sum(group.rejected for group in groups)),
        "drawn_reward": fmean(sample.reward or 0.0 for sample in graded),
        "drawn_correct": fmean(sample.correct for sample in graded),
    }


def _measured(groups: Sequence[Group]) -> dict[str, float]:
    judged = [sample for group in groups for sample in group.judged]
    graded = [sample for sample in judged if sample.reward is not None]
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    turns = [len(rollout.turns) for rollout in rollouts]
    return {
        "reward": fmean(sample.reward or 0.0 for sample in graded),
        "correct": fmean(sample.correct for sample in graded),
        "unscored": float(len(judged) - len(graded)),
        "completion_tokens": fmean(rollout.tokens for rollout in rollouts),
        "cut_off": fmean(rollout.is_cut_off for rollout in rollouts),
        "groups_used": float(sum(group.teaches for group in groups)),
        "spread": fmean(group.teaches for group in groups),
        **(
            {"turns": fmean(turns), "lost": float(sum(bool(rollout.lost) for rollout in rollouts))}
            if set(turns) != {1}
            else {}
        ),
    }


def _by_component(groups: Sequence[Group]) -> dict[str, float]:
    """Return reward/<name> over what was graded, where a reward is the sum of several components."""
    graded = [sample for group in groups for sample in group.judged if sample.reward is not None]
    names = dict.fromkeys(name for sample in graded for name in sample.components)
    if len(names) < 2:
        return {}
    return {f"reward/{name}": fmean(sample.components.get(name, 0.0) for sample in graded) for name in names}


def _by_field(groups: Sequence[Group]) -> dict[str, float]:
    """Return correct/<field>=<value> over what was graded, where problems say how hard they are; the same and
    reward/benchmark=<name> where they are of several benchmarks.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for group in groups:
        graded = [sample for sample in group.judged if sample.reward is not None]
        if group.problem.source:
            values[f"reward/benchmark={group.problem.source}"] += [sample.reward or 0.0 for sample in graded]
            values[f"correct/benchmark={group.problem.source}"] += [sample.correct for sample in graded]
        for field in DIFFICULTY:
            if isinstance(value := group.problem.row.get(field), str | int | float):
                values[f"correct/{field}={value}"] += [sample.correct for sample in graded]
    return {name: fmean(shares) for name, shares in sorted(values.items()) if shares}


def sample_rows(groups: Sequence[Group], step: int) -> list[Row]:
    return [
        {
            "step": step,
            "problem_idx": index,
            "problem": group.problem.row.get("problem") or group.problem.row.get("question"),
            "ground_truth": group.problem.row.get("expected_answer"),
            **({"benchmark": group.problem.source} if group.problem.source else {}),
            **({} if group.place is None else {"place": group.place}),
            **({"round": group.round} if group.round else {}),
            **({"rejected": True} if group.rejected else {}),
            "mean_reward": _mean([judgement.reward for judgement in group.judged]),
            "responses": [
                {
                    "text": rollout.text,
                    "reward": judgement.reward,
                    "advantage": advantages[-1] if advantages else 0.0,
                    "extracted_answer": judgement.answer,
                    "stop_reason": rollout.finish_reason,
                    **({"turns": len(rollout.turns)} if len(rollout.turns) != 1 else {}),
                    **({"components": judgement.components} if judgement.components else {}),
                    **({"why": judgement.why} if judgement.why else {}),
                }
                for rollout, judgement, advantages in zip(
                    group.rollouts, group.judged, group.advantages, strict=True
                )
            ],
        }
        for index, group in enumerate(groups)
    ]


def _mean(rewards: Sequence[float | None]) -> float | None:
    graded = [reward for reward in rewards if reward is not None]
    if graded:
        return fmean(graded)
    return None
