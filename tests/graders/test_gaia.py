# SPDX-License-Identifier: Apache-2.0
"""Numbers, lists and words as GAIA's leaderboard compares them."""

from __future__ import annotations

import pytest

from newskills.graders.gaia import GaiaGrader, given_answer, same_answer


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        ("17", "17", True),
        ("$17.00", "17", True),
        ("1,700", "1700", True),
        ("17 km", "17", False),
        ("seventeen", "17", False),
        ("3.0,4", "3, 4", True),
        ("a,b", "a; b", True),
        ("b, a", "a, b", False),
        ("a, b, c", "a, b", False),
        ("Mr. Smith", "mr smith", True),
        ("St. Petersburg", "Saint Petersburg", False),
        ("a., b", "a, b", False),
        ("50%", "50", True),
        ("", "x", False),
    ],
)
def test_comparisons(answer: str, gold: str, same: bool) -> None:
    assert same_answer(answer, gold) == same


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Thus.\nFINAL ANSWER: Paris", "Paris"),
        ("FINAL ANSWER: Rome\nNo, wait.\n**FINAL ANSWER: Paris**", "Paris"),
        ("Paris", "Paris"),
        ("\\boxed{Paris}", "Paris"),
        ("I think\nthat it is Paris", None),
        ("", None),
    ],
)
def test_the_answer_of_a_reply(text: str, answer: str | None) -> None:
    assert given_answer(text) == answer


def test_outcomes() -> None:
    grader = GaiaGrader()
    replies = {"FINAL ANSWER: 4": "correct", "FINAL ANSWER: 5": "wrong", "": "no_answer"}
    for reply, outcome in replies.items():
        assert grader.grade({"expected_answer": "4", "generation": reply}).outcome == outcome
    assert grader.grade({"generation": "4"}).outcome == "unscored"
