# SPDX-License-Identifier: Apache-2.0
"""Answers of LegalBench by the measure of their task."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Score
from newskills.graders.reading.legal import amount_is_near, name_counts


def grade(measure: str, gold: str | None, reply: str) -> Score:
    record: dict[str, Any] = {"measure": measure, "expected_answer": gold, "generation": reply}
    return plain_grader("legalbench", {}).grade(record)


@pytest.mark.parametrize(
    ("measure", "gold", "reply", "correct"),
    [
        ("label", "Yes", " yes. ", True),
        ("label", "Yes", "Yes, it is", False),
        ("contains", "de facto merger", "It is a De Facto Merger.", True),
        ("contains", "de facto merger", "It is a merger.", False),
        ("term", "Delivery, Title", "deliveries", True),
        ("term", "Delivery, Title", "price, risk", False),
        ("names", "Ann Lee, Bo", "ann lee, bo", True),
        ("names", "Ann Lee, Bo", "Ann Lee, Bo, Cy", False),
        ("names", "Ann Lee, Bo", "Ann Lee, Cy", False),
    ],
)
def test_measures(measure: str, gold: str, reply: str, correct: bool) -> None:
    score = grade(measure, gold, reply)
    assert (score.outcome, score.fields["symbolic_correct"]) == ("correct" if correct else "wrong", correct)
    assert ("name_counts" in score.fields) is (measure == "names")


@pytest.mark.parametrize(
    ("reply", "near"),
    [("$1,000", True), ("1095", True), ("905", True), ("1101", False), ("899", False), ("none", False)],
)
def test_amounts_within_a_tenth(reply: str, near: bool) -> None:
    assert amount_is_near(reply, "$1000") is near


def test_names_are_counted() -> None:
    assert name_counts("Ann, Bo", "Ann, Bo") == (2, 1, 0), (
        "what is left counts again for each, as the authors have it"
    )
    assert name_counts("Ann", "Ann, Bo, Cy") == (1, 0, 2)
    assert name_counts("Ann, Dee, Eve", "Ann, Bo") == (1, 4, 1)
    assert grade("names", "Ann, Bo", "Bo, Ann").fields["name_counts"] == [2, 1, 0]


def test_what_cannot_be_graded() -> None:
    assert grade("label", None, "yes").outcome == "unscored"
    assert grade("size", "yes", "yes").outcome == "unscored"
    assert grade("amount", "ten", "10").outcome == "unscored"
    assert grade("label", "yes", "").outcome == "no_answer"
