# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest

from newskills.base.judgement import parse_confidence, parse_judgement
from newskills.metrics import make_metric


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("The values agree. [Correct]", True),
        ("[Correct] at first sight, but the sign differs. [Incorrect]", False),
        ("## Justification\nsame\n\n## Equivalence Judgement\nTRUE", True),
        ("## Equivalence Judgement\n**FALSE**", False),
        ("[Correct]\nJudgement: No", False),
        ("TRUE", None),
        ("The answer is correct.", None),
        ("[Correct or Incorrect]", None),
        ("extracted_final_answer: 4\nreasoning: it is correct: no doubt\n**correct:** yes\nconfidence: 90%", True),
        ("correct: no\nJudgement: Yes", True),
        ("It is not correct: no", None),
    ],
)
def test_verdicts_on_physics(text: str, verdict: bool | None) -> None:
    assert parse_judgement(text) is verdict


def test_a_long_text_takes_linear_time() -> None:
    assert parse_judgement("equivalence judgement " * 200_000 + "[correct" * 200_000) is None


@pytest.mark.parametrize("name", ["hle", "frontierscience-olympiad"])
def test_only_the_judge_decides(name: str) -> None:
    metric = make_metric(name)
    judgements = ["Judgement: Yes", "Judgement: No", "The judge said nothing of use."]
    for number, judgement in enumerate(judgements):
        row = {"id": number, "generation": "Exact Answer: 4", "symbolic_correct": True, "judgement": judgement}
        metric.update([row])
    found = metric.metrics()["pass@1"]
    assert found["judge_correct"] == pytest.approx(50.0)
    assert "symbolic_correct" not in found
    assert "no_answer" not in found
    assert metric.ledger().unscored == 1
    wrong = metric.incorrect({"id": 1, "generation": "long", "judgement": "Judgement: Yes"})
    assert parse_judgement(wrong["judgement"]) is False


def test_functions_for_a_service_are_no_accuracy() -> None:
    metric = make_metric("critpt")
    waiting = {"outcome": "unscored", "outcome_cause": "judge"}
    metric.update([{"generated_code": "def answer(): ...", "predicted_answer": "def answer(): ...", **waiting}])
    metric.update([{"generated_code": "", "predicted_answer": None, "outcome": "no_answer"}])
    row = metric.metrics()["pass@1"]
    assert row["functions"] == 50.0
    assert "accuracy" not in row
    told = make_metric("critpt")
    told.update([{"generated_code": "def answer(): ...", "full_dataset_accuracy": 0.1, **waiting}])
    assert told.metrics()["pass@1"]["full_dataset_accuracy"] == 10.0


def test_the_calibration_error_of_an_exam() -> None:
    """Two bins of three count: 80 % sure and 70 % right, 90 % sure and all right."""
    metric = make_metric("hle")
    for number in range(300):
        sure = (80, 90, 100)[number // 100]
        right = number % 100 < (70, 100, 0)[number // 100]
        text = f"correct: {'yes' if right else 'no'}\nconfidence: {sure}%\nJudgement: {'Yes' if right else 'No'}"
        metric.update([{"id": number, "generation": "Exact Answer: 4", "judgement": text}])
    metric.update([{"id": 300, "generation": "Exact Answer: 4", "judgement": "Judgement: Yes"}])
    error = metric.numbers()["pass@1"]["calibration_error"]
    assert (error.n, error.unscored) == (301, 1), "one says nothing of how sure it is"
    assert error.value == pytest.approx(100 * math.sqrt((0.1**2 + 0.1**2) / 3))
    assert metric.metrics()["pass@1"]["calibration_error"] == error.value


def test_a_few_answers_have_no_calibration_error() -> None:
    metric = make_metric("hle-aa")
    metric.update([{"id": 1, "generation": "4", "judgement": '{"correct": "yes", "confidence": 90}'}])
    assert metric.metrics()["pass@1"].keys() >= {"judge_correct"}
    assert "calibration_error" not in metric.metrics()["pass@1"]


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        ('{"correct": "no", "confidence": "45"}', 45),
        ("confidence: 45%", 45),
        ("**Confidence:** 100\nJudgement: No", 100),
        ("confidence: 101", None),
        ("confidence: high", None),
        ("confidence: 1000", None),
        ("[1]", None),
        (None, None),
    ],
)
def test_confidences(text: object, percent: int | None) -> None:
    assert parse_confidence(text) == percent
