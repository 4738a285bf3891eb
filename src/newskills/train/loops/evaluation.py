# SPDX-License-Identifier: Apache-2.0
"""Held-out problems on the way: how a model in training answers what it does not learn from, and when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec
from msgspec import Struct

from newskills.train.loops.samples import Problem, Rollout, Scorer
from newskills.train.settings import EvalSettings
from newskills.train.verbs import SamplingClient, SamplingParams

SCORE = "eval_reward"
"""The metric by which the best checkpoint is chosen."""


TELLING = 20
"""Fewer held-out problems are not worth to be taken from what is learnt from."""


class HeldOut(Struct, frozen=True, kw_only=True):
    problems: Sequence[Problem]
    scorer: Scorer
    settings: EvalSettings

    def due(self, done: int, steps: int) -> bool:
        """Return whether to measure after `done` steps; 0 is before the first."""
        every = self.settings.every
        return done % every == 0 or done == steps


def kept_apart(problems: Sequence[Problem], most: int) -> tuple[list[Problem], list[Problem]]:
    """Return (problems to learn from, problems to measure on): of the latter at most `most` and a tenth, evenly spread.

    No prompt is in both; where all have the same (an environment says later what to do), no row is. So few that they
    would tell nothing (`TELLING`) are not taken: then all are learnt from.
    """
    count = min(most, len(problems) // 10)
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


def measure(client: SamplingClient, held_out: HeldOut, seed: int) -> dict[str, float]:
    """Return eval_reward and eval_correct, means over what was graded; eval_unscored counts the rest.

    Raises TrainingError where nothing can be graded.
    """
    problems = held_out.problems[: held_out.settings.max_problems]
    judged = held_out.scorer.judge(_rollouts(client, held_out, problems, seed))
    graded = [sample for sample in judged if sample.reward is not None]
    return {
        SCORE: fmean(sample.reward or 0.0 for sample in graded),
        "eval_correct": fmean(sample.correct for sample in graded),
        "eval_unscored": float(len(judged) - len(graded)),
    }


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
