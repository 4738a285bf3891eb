# SPDX-License-Identifier: Apache-2.0
"""The samples of a problem as a group: their advantages, what is measured of them, what is kept of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, stdev

from msgspec import Struct

from newskills.base.records import Row
from newskills.train.loops.samples import Judged, Problem
from newskills.train.verbs import Sampled

DIFFICULTY = ("level", "difficulty")
"""Fields of a problem by which the share of right answers is told apart."""


class Group(Struct, frozen=True):
    problem: Problem
    texts: list[str]
    samples: list[Sampled]
    judged: list[Judged]
    advantages: list[float]


def advantages_of(rewards: Sequence[float | None], *, by_std: bool) -> list[float]:
    """reward − mean, by the standard deviation of the sample where asked for; 0 for what was not graded, or if all are
    equal.
    """
    graded = [reward for reward in rewards if reward is not None]
    if len(set(graded)) < 2:
        return [0.0] * len(rewards)
    mean, scale = fmean(graded), (stdev(graded) + 1e-4 if by_std else 1.0)
    return [0.0 if reward is None else (reward - mean) / scale for reward in rewards]


def measured(groups: Sequence[Group]) -> dict[str, float]:
    """Rewards over what was graded; how much was not; how many groups taught something."""
    judged = [sample for group in groups for sample in group.judged]
    graded = [sample for sample in judged if sample.reward is not None]
    samples = [sample for group in groups for sample in group.samples]
    return {
        "reward": fmean(sample.reward or 0.0 for sample in graded),
        "correct": fmean(sample.correct for sample in graded),
        "unscored": float(len(judged) - len(graded)),
        "completion_tokens": fmean(len(sample.tokens) for sample in samples),
        "cut_off": fmean(sample.stop_reason == "length" for sample in samples),
        "groups_used": float(sum(any(group.advantages) for group in groups)),
        **_by_component(graded),
        **_by_difficulty(groups),
    }


def _by_component(graded: Sequence[Judged]) -> dict[str, float]:
    """reward/<name> over what was graded, where a reward is the sum of several components."""
    names = dict.fromkeys(name for sample in graded for name in sample.components)
    if len(names) < 2:
        return {}
    return {f"reward/{name}": fmean(sample.components.get(name, 0.0) for sample in graded) for name in names}


def _by_difficulty(groups: Sequence[Group]) -> dict[str, float]:
    """correct/<field>=<value> over what was graded, where problems say how hard they are."""
    verdicts: dict[str, list[bool]] = defaultdict(list)
    for group in groups:
        for field in DIFFICULTY:
            if isinstance(value := group.problem.row.get(field), str | int | float):
                verdicts[f"correct/{field}={value}"] += [
                    sample.correct for sample in group.judged if sample.reward is not None
                ]
    return {name: fmean(values) for name, values in sorted(verdicts.items()) if values}


def sample_rows(groups: Sequence[Group], step: int) -> list[Row]:
    return [
        {
            "step": step,
            "problem_idx": index,
            "problem": group.problem.row.get("problem") or group.problem.row.get("question"),
            "ground_truth": group.problem.row.get("expected_answer"),
            "mean_reward": _mean([judgement.reward for judgement in group.judged]),
            "responses": [
                {
                    "text": text,
                    "reward": judgement.reward,
                    "advantage": advantage,
                    "extracted_answer": judgement.answer,
                    "stop_reason": sampled.stop_reason,
                    **({"components": judgement.components} if judgement.components else {}),
                    **({"why": judgement.why} if judgement.why else {}),
                }
                for text, judgement, advantage, sampled in zip(
                    group.texts, group.judged, group.advantages, group.samples, strict=True
                )
            ],
        }
        for index, group in enumerate(groups)
    ]


def _mean(rewards: Sequence[float | None]) -> float | None:
    graded = [reward for reward in rewards if reward is not None]
    return fmean(graded) if graded else None
