# SPDX-License-Identifier: Apache-2.0
"""What the samples of one problem are worth together, for k = 1 … N at once.

Each function takes the scored samples in seed order and returns N values: the first is for the first sample alone,
the last for all N.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from newskills.base.stats import pass_at_k

Answers = Sequence[str | None]
ZERO_ONE = frozenset((0, 1))


def pass_at_each_k(scores: Sequence[float]) -> Sequence[float]:
    """Compute pass@k: unbiased for 0/1 scores, else the best of the first k."""
    if ZERO_ONE.issuperset(scores):
        return _unbiased_pass_at_k(len(scores), int(sum(scores)))
    return list(accumulate(scores, max))


def majority_at_each_k(answers: Answers, scores: Sequence[float]) -> Sequence[float]:
    """Compute majority@k: the average score of the most frequent (answer, score) pairs; 0 without an answer."""
    counts: dict[tuple[str, float], int] = {}
    most = tied = 0
    total = value = 0.0
    values = []
    for answer, score in zip(answers, scores, strict=True):
        if answer is not None:
            count = counts[answer, score] = counts.get((answer, score), 0) + 1
            if count > most:
                most, tied, total = count, 1, score
            elif count == most:
                tied, total = tied + 1, total + score
            value = total / tied
        values.append(value)
    return values


def rewarded_best(answers: Answers, scores: Sequence[float], rewards: Sequence[float | None]) -> Sequence[float]:
    """Compute rm_best@k: the score of the answer with the highest reward (the first of equals); 0 without an
    answer."""
    best: float | None = None
    value = 0.0
    values = []
    for answer, score, reward in zip(answers, scores, rewards, strict=True):
        if answer is not None and reward is not None and (best is None or reward > best):
            best, value = reward, score
        values.append(value)
    return values


def rewarded_majority(
    answers: Answers, scores: Sequence[float], rewards: Sequence[float | None]
) -> Sequence[float]:
    """Compute rm_majority@k: the average score of the answer with the largest summed reward; 0 without an
    answer."""
    sums: dict[str, float] = {}
    rewards_by_answer: dict[str, list[float]] = {}
    value = 0.0
    values = []
    for answer, score, reward in zip(answers, scores, rewards, strict=True):
        if answer is not None and reward is not None:
            sums[answer] = sums.get(answer, 0.0) + reward
            rewards_by_answer.setdefault(answer, []).append(score)
            chosen = rewards_by_answer[max(sums, key=sums.__getitem__)]
            value = sum(chosen) / len(chosen)
        values.append(value)
    return values


@lru_cache(maxsize=4096)
def _unbiased_pass_at_k(samples: int, correct: int) -> tuple[float, ...]:
    return tuple(pass_at_k(samples, correct, k) for k in range(1, samples + 1))
