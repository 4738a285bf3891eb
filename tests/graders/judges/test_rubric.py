# SPDX-License-Identifier: Apache-2.0
"""Points for criteria, and the mean that is cut as a whole; figures worked out by hand."""

from __future__ import annotations

import pytest

from newskills.base.records import Row
from newskills.graders.judges.rubric import RubricGrader, rubric_score
from newskills.metrics import make_metric

RUBRICS = [
    {"criterion": "a", "points": 5, "tags": ["axis:accuracy"]},
    {"criterion": "b", "points": 3, "tags": ["axis:completeness", "level:example"]},
    {"criterion": "c", "points": -4, "tags": ["axis:accuracy"]},
    {"criterion": "d", "points": -2, "tags": ["axis:tone"]},
]


def graded(*verdicts: str) -> Row:
    texts = {f"judgement-rubric-{number}": text for number, text in enumerate(verdicts, 1)}
    score = RubricGrader().grade({"rubrics": RUBRICS, "generation": "reply", **texts})
    return {**score.fields, "outcome": score.outcome, "cause": score.cause, "value": score.value}


def yes(*met: bool) -> list[str]:
    return [f"Because.\nJudgement: {'Yes' if verdict else 'No'}" for verdict in met]


def test_faults_cost_points() -> None:
    result = graded(*yes(True, False, True, False))
    assert result["rubric_score"] == pytest.approx((5 - 4) / 8)
    assert result["axis_scores"] == {"accuracy": pytest.approx(0.2), "completeness": 0.0}, "tone can only lose"
    assert result["outcome"] == "wrong"


def test_all_that_is_good_and_no_fault_is_right() -> None:
    result = graded(*yes(True, True, False, False))
    assert (result["rubric_score"], result["outcome"]) == (1.0, "correct")


def test_a_score_may_be_negative() -> None:
    result = graded(*yes(False, False, True, True))
    assert (result["rubric_score"], result["value"]) == (-0.75, 0.0)


@pytest.mark.parametrize("texts", [[], ["Judgement: Yes"] * 3, ["Judgement: Yes"] * 3 + ["perhaps"]])
def test_a_missing_verdict_is_the_judges_failure(texts: list[str]) -> None:
    result = graded(*texts)
    assert (result["outcome"], result["cause"], result["rubric_score"]) == ("unscored", "judge", None)


def test_only_faults_cannot_be_scored() -> None:
    assert rubric_score([{"points": -1}], [True]) is None


def test_the_mean_is_cut_not_the_samples() -> None:
    def figures(*scores: float | None) -> dict[str, float]:
        metric = make_metric("rubric")
        for score in scores:
            metric.update(
                [{"rubric_score": score, "axis_scores": {} if score is None else {"accuracy": score / 2}}]
            )
        return {name: number.value for name, number in metric.numbers()["pass@1"].items()}

    assert figures(1.0, -0.5, 0.4, None) == {"score": pytest.approx(30.0), "axis_accuracy": pytest.approx(15.0)}
    assert figures(-0.5, 0.1)["score"] == 0.0
