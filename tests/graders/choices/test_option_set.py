# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row, Score
from newskills.graders.option_set import sorted_letters
from newskills.metrics import make_metric

FOUR = {"A": "w", "B": "x", "C": "y", "D": "z"}


def grade(generation: str, gold: str, name: str = "option_set", **more: object) -> Score:
    record: Row = {**FOUR, "generation": generation, "expected_answer": gold, **more}
    return plain_grader(name, {}).grade(record)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A", "A"), ("C, A", "AC"), ("BD", "BD"), ("(B) and (D)", "BD"), (r"\text{A, C}", "AC"), ("A、C", "AC"),
        (r"\mathrm{A},\,\mathrm{B}", "AB"), ("Options A and B", "AB"), ("", ""), ("AA", ""), ("E", ""), ("A or B", ""),
        ("not A", ""), ("12", ""), ("a", ""),
    ],
)  # fmt: skip
def test_lists_of_letters(text: str, found: str) -> None:
    assert sorted_letters(text, 4) == found


@pytest.mark.parametrize(
    ("generation", "gold", "outcome"),
    [
        (r"so \boxed{BD}", "BD", "correct"),
        (r"\boxed{D, B}", "BD", "correct"),
        ("The answers are B and D.", "BD", "correct"),
        ("Answer: **B, D**", "BD", "correct"),
        ("答案：BD", "BD", "correct"),
        ("Answer: B, D. Both follow from the text.", "BD", "correct"),
        ("The answer is B because of the sign.", "B", "correct"),
        ("Answer: A. B is wrong.", "A", "correct"),
        ("Answer: A, C. B is wrong.", "AC", "correct"),
        ("Answer: A, B or C", "B", "wrong"),
        (r"\boxed{B}", "BD", "wrong"),
        (r"\boxed{ABD}", "BD", "wrong"),
        (r"\boxed{B}", "B", "correct"),
        (r"\boxed{7}", "B", "no_answer"),
        ("I cannot say.", "B", "no_answer"),
        ("<think>B or", "B", "no_answer"),
        (r"<think>\boxed{A}</think> \boxed{B}", "B", "correct"),
        (r"\boxed{B}", "", "unscored"),
    ],
)
def test_all_letters_have_to_be_there(generation: str, gold: str, outcome: str) -> None:
    assert grade(generation, gold).outcome == outcome


@pytest.mark.parametrize(
    ("generation", "gold", "kind", "credit"),
    [
        (r"\boxed{ABD}", "ABD", "MCQ(multiple)", 1.0),
        (r"\boxed{AB}", "ABD", "MCQ(multiple)", 0.5),
        (r"\boxed{A}", "ABD", "MCQ(multiple)", 0.25),
        (r"\boxed{AC}", "ABD", "MCQ(multiple)", 0.0),
        (r"\boxed{A}", "B", "MCQ", 0.0),
        (r"\boxed{B}", "B", "MCQ", 1.0),
        (r"\boxed{12}", "12", "Integer", 1.0),
        (r"\boxed{13}", "12", "Integer", 0.0),
        (r"\boxed{2.36}", "2.35", "Numeric", 1.0),
        (r"\boxed{2.38}", "2.35", "Numeric", 0.0),
        (r"\boxed{0.254}", "0.25", "Numeric", 1.0),
        (r"\boxed{0.27}", "0.25", "Numeric", 0.0),
    ],
)
def test_credit_in_the_examination(generation: str, gold: str, kind: str, credit: float) -> None:
    score = grade(generation, gold, "jeebench", answer_type=kind)
    assert score.grader == "jeebench@4"
    metric = make_metric("generic")
    metric.update([{"id": 1, "outcome": score.outcome, **score.fields}])
    assert metric.metrics()["pass@1"]["accuracy"] == pytest.approx(100 * credit)


def test_an_unknown_kind_of_question_is_the_fault_of_the_data() -> None:
    assert grade("4", "4", "jeebench", answer_type="essay").outcome == "unscored"


def test_hostile_texts_take_linear_time() -> None:
    assert grade("answer " * 100_000 + "A " * 100_000, "A").outcome in ("no_answer", "wrong")
    assert grade("\\boxed{" + "A," * 100_000 + "}", "A").outcome == "no_answer"
