# SPDX-License-Identifier: Apache-2.0
"""The share of probability on true answers, against figures worked out by hand."""

from __future__ import annotations

import math

import pytest

from newskills.graders.loglikelihood import LikelihoodMassGrader


@pytest.mark.parametrize(
    ("values", "truths", "share"),
    [
        ([math.log(0.3), math.log(0.1), math.log(0.2)], [True, False, True], 0.5 / 0.6),
        ([-1000.0, -1001.0], [False, True], math.exp(-1) / (1 + math.exp(-1))),
        ([-5.0], [True], 1.0),
        ([-5.0, -5.0], [False, False], 0.0),
    ],
)
def test_shares(values: list[float], truths: list[bool], share: float) -> None:
    score = LikelihoodMassGrader().grade({"loglikelihoods": values, "true_continuations": truths})
    assert score.fields["symbolic_correct"] == pytest.approx(share)
    assert score.outcome == ("correct" if share > 0.5 else "wrong")


def test_lists_of_other_lengths_cannot_be_graded() -> None:
    assert LikelihoodMassGrader().grade({"loglikelihoods": [-1.0], "true_continuations": []}).outcome == "unscored"
    assert LikelihoodMassGrader().grade({"loglikelihoods": [], "true_continuations": []}).outcome == "unscored"


def test_the_right_answer_is_what_is_true() -> None:
    grader = LikelihoodMassGrader()
    record = {"true_continuations": [False, True, False]}
    reply = grader.gold_reply(record)
    assert reply is not None
    assert grader.grade(record | reply).fields["symbolic_correct"] == pytest.approx(1.0)
    assert grader.gold_reply({}) is None
