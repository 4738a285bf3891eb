# SPDX-License-Identifier: Apache-2.0
"""Answers to MathVista; the authors' script is in tests/agreement."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graders.plain import plain_grader

OPTIONS = {"A": "dark red", "B": "light red", "C": "blue"}


@pytest.mark.parametrize(
    ("said", "gold", "more", "outcome"),
    [
        ("12.4", "12", {"answer_type": "integer"}, "correct"),
        ("13.4", "12", {"answer_type": "integer"}, "wrong"),
        ("1e999", "12", {"answer_type": "integer"}, "wrong"),
        ("0.574", "0.57", {"answer_type": "float", "precision": 2.0}, "correct"),
        ("0.576", "0.57", {"answer_type": "float", "precision": 2.0}, "wrong"),
        ("\\text{blue}", "C", OPTIONS, "correct"),
        ("Light red", "B", OPTIONS, "correct"),
        ("(B)", "A", OPTIONS, "wrong"),
        ("(a) dark red", "A", OPTIONS, "correct"),
        ("[1, 2]", "[1, 2]", {"answer_type": "list"}, "correct"),
        ("[1, 3]", "[1, 2]", {"answer_type": "list"}, "wrong"),
    ],
)
def test_answers_are_brought_to_the_wanted_kind(said: str, gold: str, more: dict[str, Any], outcome: str) -> None:
    record = {"expected_answer": gold, "generation": f"I looked.\n\\boxed{{{said}}}", **more}
    score = plain_grader("mathvista", {}).grade(record)
    assert (score.outcome, score.fields["symbolic_correct"]) == (outcome, outcome == "correct")
    assert score.grader.startswith("mathvista@2, math@")


def test_no_box_is_no_answer() -> None:
    assert plain_grader("mathvista", {}).grade({"expected_answer": "1", "generation": ""}).outcome == "no_answer"
