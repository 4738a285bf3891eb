# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.base.judgement import parse_judgement
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
