# SPDX-License-Identifier: Apache-2.0
"""HotpotQA: words, support, spellings of the right answer, and whether it can be found by its text at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.graders.hotpotqa import (
    answer_overlap,
    facts_overlap,
    gold_spellings,
    holds_spelling,
    is_findable_by_text,
    parse_reply,
)


def test_words_count_by_precision_and_recall() -> None:
    one = answer_overlap("The Old Man and the Sea", "old man river run")
    assert (one.exact, one.precision, one.recall) == (0.0, 2 / 4, 2 / 4)
    two = answer_overlap("old old man", "the old")
    assert (two.precision, two.recall, two.f1) == pytest.approx((1 / 3, 1.0, 0.5))
    assert answer_overlap("An old man!", "old MAN") == (1.0, 1.0, 1.0)
    nothing = answer_overlap("red", "blue")
    assert (nothing, nothing.f1) == ((0.0, 0.0, 0.0), 0.0)
    assert answer_overlap("the", "a") == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("word", ["yes", "no", "noanswer"])
def test_yes_and_no_match_wholly_or_not_at_all(word: str) -> None:
    assert answer_overlap(word, f"{word} indeed") == (0.0, 0.0, 0.0)
    assert answer_overlap(f"{word} indeed", word) == (0.0, 0.0, 0.0)
    assert answer_overlap(f"{word}.", word) == (1.0, 1.0, 1.0)


def test_support_counts_alike() -> None:
    gold = {("A", 0), ("B", 1)}
    assert facts_overlap(gold, gold) == (1.0, 1.0, 1.0)
    assert facts_overlap({("A", 0), ("A", 1), ("C", 2), ("D", 0)}, gold) == (0.0, 0.25, 0.5)
    assert facts_overlap(set(), gold) == facts_overlap(gold, set()) == (0.0, 0.0, 0.0)
    assert facts_overlap(set(), set()) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("reply", "answer", "facts"),
    [
        ('{"answer": "x", "supporting_facts": [["T", 1], ["U", 0]]}', "x", {("T", 1), ("U", 0)}),
        ('{"answer": "x"} then { "answer": "y", "supporting_facts": [[7, 2]]}', "y", {("7", 2)}),
        ('{"answer": 5, "supporting_facts": [["T", true], ["T", "1"], ["T"], "T", ["T", 1, 2]]}', "5", set()),
        ('{"answer": "x"} {"answer": null}', "x", set()),
        ('{"answer": "x"} {"answer": ["y"]} {"answer": {"z": 1}}', "x", set()),
        ('{"answer": "x"} {"answer": broken', "x", set()),
        ('{"supporting_facts": {"T": 1}, "answer": "x"}', "x", set()),
        ("Answer: plain", "plain", set()),
        ("", None, set()),
    ],
)
def test_the_last_object_with_an_answer_counts(reply: str, answer: str | None, facts: set[Any]) -> None:
    assert parse_reply(reply) == (answer, facts)


def test_twenty_objects_are_looked_at() -> None:
    first, hollow = '{"answer": "x", "supporting_facts": [["T", 1]]} ', '{"answer": null} '
    assert parse_reply(first + hollow * 19) == ("x", {("T", 1)})
    assert parse_reply(first + hollow * 20)[1] == set()


@pytest.mark.parametrize(
    ("gold", "forms"),
    [
        ("The Beatles", {"The Beatles", "Beatles"}),
        ('"Help" (1965)', {'"Help" (1965)', "Help (1965)", '"Help"', "1965"}),
        ("eight", {"eight", "8"}),
        ("21st", {"21st", "twenty-first"}),
        ("73,260", {"73,260", "73260"}),
        ("J. Smith Jr.", {"J. Smith Jr.", "J. Smith Jr", "J Smith Jr"}),
        ("Bonnie & Clyde", {"Bonnie & Clyde", "Bonnie and Clyde"}),
        ("Bonnie AND Clyde", {"Bonnie AND Clyde", "Bonnie & Clyde"}),
        ("co-op", {"co-op", "co op"}),
        ("-40", {"-40"}),
        ("3.5", {"3.5"}),
        ("UK (ab)", {"UK (ab)"}),
        ("a1 (1)", {"a1 (1)", "1"}),
        ("No", {"No"}),
    ],
)
def test_spellings_of_a_right_answer(gold: str, forms: set[str]) -> None:
    assert gold_spellings(gold) == forms


def test_every_small_number_has_both_spellings() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    words = f"{text} seventeen eighteen nineteen twenty".split()
    for number, word in enumerate(words, 1):
        assert str(number) in gold_spellings(word)
        assert word in gold_spellings(str(number))


@pytest.mark.parametrize(
    ("form", "answer", "found", "strictly"),
    [
        ("Rome", "It is ROME.", True, True),
        ("Rome", "chromed", True, False),
        ("Paris", "comparison", True, True),
        ("it’s", "It's", True, True),
        ("a–b", "a-b", True, True),
        ("Rome", "Oslo", False, False),
        ("", "Oslo", False, False),
        ("Paris", "x" * 41 + "Paris" + "y" * 34, True, True),
        ("Paris", "x" * 41 + "Paris" + "y" * 35, True, False),
        ("Paris", "x" * 40 + "Paris" + "y" * 90, True, True),
    ],
)
def test_a_spelling_stands_in_an_answer(form: str, answer: str, found: bool, strictly: bool) -> None:
    """Strictly: of four letters or fewer as a word of its own, and in a long answer near its start."""
    assert holds_spelling({form}, answer) is found
    assert holds_spelling({form}, answer, strict=True) is strictly


@pytest.mark.parametrize(
    ("gold", "can"),
    [
        ("x" * 40, True),
        ("x" * 41, False),
        ("John Fitzgerald", True),
        ("John Fitzgerald Kennedy", False),
        ("John Fitzgerald Kennedy Jr.", False),
        ("John fitzgerald Kennedy Jr", True),
        ("Lord of the Rings", True),
        ("The Lord Of Rings", True),
        ("One Two Three four five", False),
        ("One Two three four five", True),
        ("One Two Three four five six", False),
        ("One Two Three Four five six seven", True),
    ],
)
def test_long_answers_and_long_names_cannot_be_found_by_their_text(gold: str, can: bool) -> None:
    assert is_findable_by_text(gold) is can


def test_both_together() -> None:
    grader = plain_grader("hotpotqa", {})
    record = {"expected_answer": "red cat", "supporting_facts": [["T", 0], ["U", 1]]}
    reply = {"answer": "red dog", "supporting_facts": [["T", 0]]}
    score = grader.grade({**record, "generation": json.dumps(reply)})
    assert (score.outcome, score.value) == ("wrong", 0.5)
    fields = score.fields
    assert (fields["answer_em"], fields["answer_f1"], fields["sp_em"]) == (0.0, 0.5, 0.0)
    assert fields["sp_f1"] == pytest.approx(2 / 3)
    joint_precision, joint_recall = 0.5 * 1.0, 0.5 * 0.5
    assert fields["joint_f1"] == pytest.approx(
        2 * joint_precision * joint_recall / (joint_precision + joint_recall)
    )
    right = grader.grade(
        {
            **record,
            "generation": json.dumps({**reply, "answer": "Red cat", "supporting_facts": [["U", 1], ["T", 0]]}),
        }
    )
    assert (right.outcome, right.fields["joint_em"], right.fields["joint_f1"]) == ("correct", 1.0, 1.0)
    assert grader.grade({"expected_answer": "x", "generation": "x"}).outcome == "unscored"
    assert (
        plain_grader("hotpotqa", {"supporting_facts": False})
        .grade({"expected_answer": "x", "generation": "Answer: x"})
        .outcome
        == "correct"
    )
