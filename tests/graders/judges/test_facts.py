# SPDX-License-Identifier: Apache-2.0
"""Questions of fact: verdicts of a judge, and HotpotQA's answers with their supporting sentences."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.judgement import parse_verdict
from newskills.base.records import Row, Score
from newskills.graders.hotpotqa import gold_spellings, is_findable_by_text

LETTERS = {"A": "correct", "B": "incorrect", "C": "not_attempted"}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("A", "correct"),
        (" b.\n", "incorrect"),
        ("**C**", "not_attempted"),
        (r"\boxed{B}", "incorrect"),
        (r"$\boxed{\text{B}}$", "incorrect"),
        ("<think>A", None),
        ("(A)", "correct"),
        ("CORRECT", "correct"),
        ("INCORRECT", "incorrect"),
        ("NOT_ATTEMPTED", "not_attempted"),
        ("Not attempted.", "not_attempted"),
        ("A: CORRECT", "correct"),
        ("C - not attempted", "not_attempted"),
        ("Grade: B", "incorrect"),
        ("The names differ.\nVerdict: INCORRECT", "incorrect"),
        ("The names differ.\n\nB", "incorrect"),
        ("A\n\nBecause both name the same person.", "correct"),
        ("The grade is **C**, since nothing is said.", "not_attempted"),
        ("<think>A or B?</think>B", "incorrect"),
        ("<grade>B</grade>", "incorrect"),
        ("Option C", "not_attempted"),
        ("✅ A", "correct"),
        ("I choose B", "incorrect"),
        ("The names agree. Therefore the answer is graded as A.", "correct"),
        ("B. The names differ.", "incorrect"),
        ("**B.** The predicted answer is incorrect.", "incorrect"),
        ("B. The answer is correct.", None),
        ("A. That is not correct.", None),
        ("A. One could say C.", None),
        ("I choose neither A nor B", None),
        ("I would call this CORRECT in the end.", "correct"),
        ("A correct answer would name Paris; this one names London.", None),
        ("A: incorrect", None),
        ("It is not CORRECT", None),
        ("CORRECT or INCORRECT, who knows", None),
        ("The answer is A good one", None),
        ("D", None),
        ("", None),
        (None, None),
    ],
)
def test_verdicts(text: str | None, verdict: str | None) -> None:
    assert parse_verdict(text, LETTERS) == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("It keeps to the diet.\nYES", "yes"),
        ("There is NO mention of nuts, so YES.", "yes"),
        ("There is NO mention of nuts, and the", None),
        ("**NO**\n\nIt lists almonds.", "no"),
        ('{"reasoning": "There is NO mention of nuts.", "verdict": "YES"}', "yes"),
        ('```json\n{"verdict": "no"}\n```', "no"),
        ('{"reasoning": "YES", "verdict": "MAYBE"}', None),
        ('{"reasoning": "There is NO ment', None),
    ],
)
def test_yes_and_no_are_verdicts_where_they_stand_last_or_alone(text: str, verdict: str | None) -> None:
    assert parse_verdict(text, {"Y": "yes", "N": "no"}) == verdict


@pytest.mark.parametrize("filler", ["A", "answer: ", "grade ", "*", "\n", "CORRECT "])
def test_verdicts_cost_linear_time(filler: str) -> None:
    assert parse_verdict("x" + filler * 100_000 + "x", LETTERS) in (None, "correct")


def test_outcomes_of_verdicts() -> None:
    grader = plain_grader("verdict", {})

    def outcome(text: str | None) -> tuple[str, str | None]:
        score = grader.grade({"judgement": text})
        return score.outcome, score.cause

    assert outcome("A") == ("correct", None)
    assert outcome("B") == ("wrong", "model")
    assert outcome("C") == ("no_answer", "model")
    assert outcome("perhaps") == ("unscored", "judge")
    assert outcome(None) == ("unscored", "judge")
    refusals = plain_grader("verdict", {"verdicts": {"A": "complied", "B": "refused"}, "unanswered": []})
    assert refusals.grade({"judgement": "B", "right_verdicts": ["refused"]}).outcome == "correct"
    assert refusals.grade({"judgement": "B", "right_verdicts": ["complied"]}).outcome == "wrong"


FACTS = [["Arthur's Magazine", 0], ["First for Women", 0]]
QUESTION: Row = {"expected_answer": "Arthur's Magazine", "supporting_facts": FACTS}


def hotpot(generation: str, row: Row = QUESTION, **config: Any) -> Score:
    return plain_grader("hotpotqa", config).grade({**row, "generation": generation})


def reply(answer: Any, facts: Any = FACTS) -> str:
    return json.dumps({"answer": answer, "supporting_facts": facts})


def test_right_answers_with_their_facts() -> None:
    score = hotpot(f"I think so:\n```json\n{reply('Arthurs magazine')}\n```")
    assert score.outcome == "correct"
    assert score.fields == {
        "predicted_answer": "Arthurs magazine",
        "answer_em": 1.0,
        "answer_f1": 1.0,
        "is_correct": False,
        "is_correct_strict": False,
        "reliable": True,
        "sp_em": 1.0,
        "sp_f1": 1.0,
        "joint_em": 1.0,
        "joint_f1": 1.0,
    }


def test_partly_right_answers() -> None:
    fields = hotpot(reply("Magazine", FACTS[:1])).fields
    assert (fields["answer_em"], fields["answer_f1"]) == (0.0, pytest.approx(2 / 3))
    assert (fields["sp_em"], fields["sp_f1"]) == (0.0, pytest.approx(2 / 3))
    assert fields["joint_f1"] == pytest.approx(2 * 1 * 0.25 / 1.25), "precision 1·1, recall ½·½"


@pytest.mark.parametrize(
    ("generation", "answer"),
    [
        (reply("first") + reply("Arthur's Magazine"), "Arthur's Magazine"),
        ('{"supporting_facts": [], "answer": "x"}', "x"),
        ("Answer: Arthur's Magazine", "Arthur's Magazine"),
        ('{"answer": 1844}', "1844"),
        ('{"answer": ["a"]}', None),
        ("", None),
        ('{"answer": "' * 5000, None),
        ('{"answer":' + "[" * 100_000, None),
    ],
)
def test_replies_are_read(generation: str, answer: str | None) -> None:
    score = hotpot(generation)
    if answer is None:
        assert score.outcome in ("no_answer", "wrong")
        assert score.fields["answer_em"] == score.fields["sp_em"] == 0.0
    else:
        assert score.fields["predicted_answer"] == answer


def test_facts_that_are_no_facts_are_left_out() -> None:
    assert hotpot(reply("x", [["Arthur's Magazine", "0"], "y", [1], *FACTS])).fields["sp_em"] == 1.0
    assert hotpot(reply("x", "none")).fields["sp_f1"] == 0.0


def test_yes_and_no_match_wholly() -> None:
    row = {**QUESTION, "expected_answer": "no"}
    assert hotpot(reply("no"), row).fields["answer_f1"] == 1.0
    assert hotpot(reply("no way"), row).fields["answer_f1"] == 0.0


def test_closed_book_and_missing_gold() -> None:
    closed = {"supporting_facts": False}
    assert set(hotpot('{"answer": "x"}', {"expected_answer": "x"}, **closed).fields) == {
        "predicted_answer", "answer_em", "answer_f1", "is_correct", "is_correct_strict", "reliable"
    }  # fmt: skip
    assert hotpot(reply("x"), {"expected_answer": "x"}).outcome == "unscored"
    assert hotpot(reply("x"), {"supporting_facts": FACTS}).outcome == "unscored"


def test_spellings_of_answers() -> None:
    assert gold_spellings("The Beatles (band)") >= {"Beatles (band)", "The Beatles", "Beatles", "band"}
    assert gold_spellings("twelve") >= {"12", "twelve"}
    assert gold_spellings("12,500") >= {"12500"}
    assert gold_spellings("J.R. Smith & Sons") >= {"JR Smith & Sons", "J.R. Smith and Sons"}
    said = hotpot(reply("It was a 12 year term in all"), {**QUESTION, "expected_answer": "twelve"})
    assert (said.fields["is_correct"], said.fields["is_correct_strict"]) == (True, True)
    late = hotpot(reply("x" * 60 + " Arthur's Magazine " + "y" * 20))
    assert (late.fields["is_correct"], late.fields["is_correct_strict"]) == (True, False)
    short = hotpot(reply("chance"), {**QUESTION, "expected_answer": "Han"})
    assert (short.fields["is_correct"], short.fields["is_correct_strict"]) == (True, False)


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ("Paris", True),
        ("Marie Curie", True),
        ("Maria Salomea Curie", False),
        ("University of Oxford", True),
        ("The Lord of the Rings", True),
        ("Grand Duchy of Saxony Weimar Eisenach", False),
        ("x" * 41, False),
    ],
)
def test_which_answers_can_be_told_by_their_text(gold: str, expected: bool) -> None:
    assert is_findable_by_text(gold) is expected
