# SPDX-License-Identifier: Apache-2.0
"""Held-out problems on the way: how a model in training answers what it does not learn from, and when to stop.

All evaluations of a run are on the same problems, so each is compared with the first one problem by problem.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import msgspec
from msgspec import Struct

from newskills.base.paired import SIGNIFICANCE_LEVEL, paired_difference, paired_test, spent_level
from newskills.train.loops.samples import Problem, Rollout, Scorer
from newskills.train.settings import EvalSettings
from newskills.train.verbs import SamplingClient, SamplingParams

SCORE = "eval_reward"
"""The metric by which the best checkpoint is chosen."""
CORRECT = "eval_correct"
"""The share of the answers that are right."""
CHANGE, LOW, HIGH, P_VALUE = "eval_change", "eval_change_low", "eval_change_high", "eval_p"
"""Metrics of an evaluation against the one before the first step: difference of the reward, its 95 % interval, p."""


TELLING = 20
"""Fewer held-out problems are not worth to be taken from what is learnt from."""
LARGEST_SHARE = 4
"""Of so many problems, one is held out at most."""
SOONEST, COST = 5, 0.625
"""Where the settings do not say how often to measure: after so many steps at least, and not before what is asked is so
many times the samples of a step each step. A step learns from its samples, too, which takes about twice as long as they
do, so that a fifth of the time is spent on evaluations."""


class HeldOut(Struct, frozen=True, kw_only=True):
    problems: Sequence[Problem]
    scorer: Scorer
    settings: EvalSettings

    def due(self, done: int, steps: int) -> bool:
        """Return whether to measure after `done` steps; 0 is before the first."""
        every = self.settings.every
        return done in (0, steps) or bool(every and done % every == 0)


class Measured(Struct, frozen=True, kw_only=True):
    """An evaluation: its `metrics`, and the `rewards` of each problem's samples, without those that were not graded."""

    metrics: dict[str, float]
    rewards: list[list[float]]


def steps_between(problems: int, step_samples: int) -> int:
    """Return after how many steps of so many samples to measure on so many answers."""
    return max(SOONEST, math.ceil(problems / (COST * step_samples)))


def change_of(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the metrics of an evaluation against an earlier one; none where fewer than two problems have both."""
    if not _are_comparable(before, after):
        return {}
    compared = paired_difference(before, after)
    return {CHANGE: compared.difference, LOW: compared.low, HIGH: compared.high, P_VALUE: compared.p_value}


def is_better(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> bool:
    """Return whether an evaluation is significantly better than an earlier one."""
    if not _are_comparable(before, after):
        return False
    compared = paired_test(before, after)
    return compared.difference > 0 and compared.p_value < SIGNIFICANCE_LEVEL


def _are_comparable(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> bool:
    """Return whether at least two problems were graded in both evaluations."""
    return sum(bool(old and new) for old, new in zip(before, after, strict=True)) >= 2


def harmful(metrics: dict[str, float], look: int, alpha: float) -> bool:
    """Return whether the `look`-th comparison of a run (from 1) shows a loss. The chance to see one, in any of them,
    where there is none, stays below `alpha`; 0: never."""
    return is_worse(metrics, spent_level(look, alpha))


def is_worse(metrics: dict[str, float], level: float) -> bool:
    """Return whether an evaluation is worse than the first one, by a test of this level; 0: never."""
    return P_VALUE in metrics and metrics[CHANGE] < 0 and metrics[P_VALUE] < level


def change_text(metrics: dict[str, float], problems: int) -> str:
    """Return the difference with its interval, as `-0.110 (95 % -0.153 to -0.067, p = 5e-08, 200 problems)`."""
    return (
        f"{metrics[CHANGE]:+.3f} (95 % {metrics[LOW]:+.3f} to {metrics[HIGH]:+.3f}, p = {metrics[P_VALUE]:.1g}, "
        f"{problems} problems)"
    )


def kept_apart(problems: Sequence[Problem], most: int) -> tuple[list[Problem], list[Problem]]:
    """Return (problems to learn from, problems to measure on): of the latter at most `most` and a quarter, evenly
    spread.

    No prompt is in both; where all have the same (an environment says later what to do), no row is. So few that they
    would tell nothing (`TELLING`) are not taken: then all are learnt from.
    """
    count = min(most, len(problems) // LARGEST_SHARE)
    if count < TELLING:
        return list(problems), []
    held = [problems[index * len(problems) // count] for index in range(count)]
    if len({tuple(problem.prompt) for problem in problems}) == 1:
        rows = {_task(problem) for problem in held}
        return [problem for problem in problems if _task(problem) not in rows], held
    prompts = {tuple(problem.prompt) for problem in held}
    return [problem for problem in problems if tuple(problem.prompt) not in prompts], held


def _task(problem: Problem) -> bytes:
    """Return what a row asks, whatever its `id`, as JSON."""
    return msgspec.json.encode({name: value for name, value in problem.row.items() if name != "id"})


def measure(client: SamplingClient, held_out: HeldOut, seed: int) -> Measured:
    """Measure eval_reward and eval_correct, means over what was graded; eval_unscored counts the rest.

    Raises TrainingError where nothing can be graded.
    """
    problems = held_out.problems[: held_out.settings.max_problems]
    judged = held_out.scorer.judge(_rollouts(client, held_out, problems, seed))
    graded = [sample for sample in judged if sample.reward is not None]
    metrics = {
        SCORE: fmean(sample.reward or 0.0 for sample in graded),
        CORRECT: fmean(sample.correct for sample in graded),
        "eval_unscored": float(len(judged) - len(graded)),
    }
    samples = held_out.settings.samples
    parts = [judged[at : at + samples] for at in range(0, len(judged), samples)]
    rewards = [[sample.reward for sample in part if sample.reward is not None] for part in parts]
    return Measured(metrics=metrics, rewards=rewards)


def _rollouts(client: SamplingClient, held_out: HeldOut, problems: Sequence[Problem], seed: int) -> list[Rollout]:
    settings, scorer = held_out.settings, held_out.scorer
    rollouts: list[Rollout] = []
    for start in range(0, len(problems), settings.batch_size):
        part = problems[start : start + settings.batch_size]
        params = SamplingParams(
            max_tokens=settings.max_tokens,
            stop=scorer.stops,
            temperature=settings.temperature,
            seed=seed + start,
        )
        groups = scorer.rollouts(client, part, settings.samples, params)
        rollouts += [rollout for group in groups for rollout in group]
    return rollouts


def best_of(scores: Sequence[tuple[int, float]]) -> int:
    """Return the step of the highest of (step, score); the last of equals. Raises ValueError for none."""
    return max(scores, key=lambda pair: (pair[1], pair[0]))[0]


def stalled(scores: Sequence[tuple[int, float]], patience: int) -> bool:
    """Return whether the last `patience` measurements are all no better than one before them."""
    if not patience or len(scores) <= patience:
        return False
    values = [value for _, value in scores]
    return max(values[-patience:]) <= max(values[:-patience])
