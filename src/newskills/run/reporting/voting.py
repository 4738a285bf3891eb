# SPDX-License-Identifier: Apache-2.0
"""Which answers to a problem vote together: those that the grader which judged them takes for the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.protocols import ComparesAnswers
from newskills.base.records import Row
from newskills.graders import make_grader
from newskills.graders.voting.groups import group_votes
from newskills.metrics.counting.base import VOTE_FIELD, ScoreMetric

GRADERS_OF_METRICS: Mapping[str, str] = {"math": "math"}
"""Metric → the grader that compares answers of records which name none, such as those of other systems."""


def with_vote_groups(predictions: Sequence[Row], metric: ScoreMetric, grader: str) -> Sequence[Row]:
    """Return the samples of a problem with the group that each votes for (`VOTE_FIELD`), where texts alone do not tell.

    Answers that were graded right are one group: each has the value of the right answer. The grader is that which the
    records name, else `grader`; one that does not say which answers are the same leaves votes to their texts.
    """
    answers = [metric.answer(record) for record in predictions]
    if len({answer for answer in answers if answer is not None}) < 2:
        return predictions
    same = comparison_of(predictions, grader)
    if same is None:
        return predictions
    right = {
        answer
        for answer, record in zip(answers, predictions, strict=True)
        if answer is not None and record.get("symbolic_correct") is True
    }
    groups = group_votes([None if answer in right else answer for answer in answers], same)
    right_group = min(right, default="")
    voted: list[Row] = []
    for record, answer, group in zip(predictions, answers, groups, strict=True):
        if answer is None:
            voted.append(record)
        elif answer in right:
            voted.append({**record, VOTE_FIELD: right_group})
        else:
            voted.append({**record, VOTE_FIELD: group})
    return voted


def comparison_of(records: Iterable[Row], grader: str) -> Callable[[str, str], bool] | None:
    """Return how the grader that `records` name, else `grader`, compares two answers; None where it does not say."""
    stamp = next((str(record["grader"]) for record in records if record.get("grader")), grader)
    return _grader_comparison(stamp.partition("@")[0])


@lru_cache
def _grader_comparison(grader: str) -> Callable[[str, str], bool] | None:
    """Return the comparison of a grader with its default settings, since records name no others."""
    try:
        made = make_grader(grader, {})
    except (UnknownNameError, ConfigError):
        return None
    if isinstance(made, ComparesAnswers):
        return made.same_answer
    return None
