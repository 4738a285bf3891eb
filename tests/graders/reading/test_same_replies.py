# SPDX-License-Identifier: Apache-2.0
"""Other forms of the right reply that `exact` promises to accept: which they are, and that they are."""

from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row

STRICT: Row = {"extract": "whole", "loose": False, "ignore_case": False}
CASED: Row = {"extract": "whole", "loose": False, "ignore_case": True}
LOOSE: Row = {"extract": "whole", "loose": True, "ignore_case": False}
ANSWER: Row = {"extract": "answer", "loose": True, "ignore_case": True}
BLANKS = "  Red  cat\n"
BOTH, DRESSED = ["RED CAT", "red cat"], ["**Red cat**", "Red cat.", '"Red cat"']


@pytest.mark.parametrize(
    ("config", "forms"),
    [
        (STRICT, [BLANKS]),
        (CASED, [BLANKS, *BOTH]),
        (LOOSE, [BLANKS, *DRESSED]),
        (ANSWER, [BLANKS, *BOTH, *DRESSED, "\\boxed{Red cat}", "**Answer:** Red cat"]),
        ({**CASED, "extract": "brackets"}, [f"[[{form}]]" for form in (BLANKS, *BOTH)]),
    ],
)
def test_forms_of_words(config: Row, forms: list[str]) -> None:
    grader = plain_grader("exact", config)
    replies = grader.same_replies({"expected_answer": "Red cat"})  # type: ignore[attr-defined]
    assert replies == [{"generation": form} for form in forms]
    for reply in replies:
        assert grader.grade({"expected_answer": "Red cat", **reply}).outcome == "correct"


@pytest.mark.parametrize("gold", ["a, b", "x = 1", "(A)", "", "two  blanks", "line\nline"])
def test_what_is_not_words_has_one_form(gold: str) -> None:
    assert plain_grader("exact", ANSWER).same_replies({"expected_answer": gold}) == []  # type: ignore[attr-defined]


def test_names_of_fields_are_settings() -> None:
    grader = plain_grader("exact", {**STRICT, "answer_key": "said", "gold_key": "right", "accepted_key": "also"})
    assert grader.gold_reply({"right": 7}) == {"said": "7"}  # type: ignore[attr-defined]
    assert grader.gold_reply({"expected_answer": 7}) is None  # type: ignore[attr-defined]
    for said, outcome in (("7", "correct"), ("8", "correct"), ("9", "wrong")):
        assert grader.grade({"right": 7, "also": [8], "said": said, "generation": "7"}).outcome == outcome
