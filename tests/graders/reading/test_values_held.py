# SPDX-License-Identifier: Apache-2.0
"""Which of several answers counts, and who is to blame for none: rules that are easily turned round unseen."""

from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.graders.exact import final_answer
from newskills.graders.reading.letters import find_labels, letter_after, what_follows

CHOICE = plain_grader("multichoice", {})
EXACT = plain_grader("exact", {"extract": "answer"})
OPTIONS = {"A": "alpha stone", "B": "beta river", "C": "gamma cloud", "D": "delta field"}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: red\nNo, wait.\nAnswer: blue\n", "blue"),
        ("Answer: red\n**Answer:** `blue`\nThat is all.", "blue"),
        (r"\boxed{red} or rather \boxed{blue}", "blue"),
        ("<answer>red</answer>\n<answer>blue</answer>", "blue"),
    ],
)
def test_the_last_answer_counts(text: str, answer: str) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("box", "gold"), [(r"\{ [ \}", "{ [ }"), (r"[ \{ ] \}", "[ { ] }"), (r"f\{x\}", "f{x}"), (r"\} \{", "} {")]
)
def test_escaped_braces_in_a_box_are_braces(box: str, gold: str) -> None:
    score = EXACT.grade({"generation": rf"So \boxed{{{box}}}", "expected_answer": gold})
    assert (score.outcome, score.fields["predicted_answer"]) == ("correct", gold)


@pytest.mark.parametrize(
    ("reply", "finish", "cause"),
    [
        ("I am still comparing the options, and the first", "length", "truncation"),
        ("I cannot tell.", "stop", "model"),
        ("I cannot tell.", None, "model"),
        ("<think>first, the stone", "stop", "truncation"),
        ("", "length", "truncation"),
    ],
)
def test_a_choice_that_was_cut_off_is_not_blamed_on_the_model(reply: str, finish: str | None, cause: str) -> None:
    record = {"generation": reply, "expected_answer": "B", "finish_reason": finish, **OPTIONS}
    score = CHOICE.grade(record)
    assert (score.outcome, score.cause) == ("no_answer", cause)


def test_a_choice_before_the_cut_counts() -> None:
    record = {"generation": "Answer: B\n\nThe reason is that", "expected_answer": "B", "finish_reason": "length"}
    assert CHOICE.grade({**record, **OPTIONS}).outcome == "correct"
    wrong = CHOICE.grade({**record, **OPTIONS, "expected_answer": "C"})
    assert (wrong.outcome, wrong.cause) == ("wrong", "model")


def ends(text: str) -> list[int]:
    """Where labels end, the last first."""
    return [label.end for label in find_labels(text)]


def test_a_label_is_a_whole_word() -> None:
    """ "answers" and "unanswered" announce nothing; words of other languages take endings."""
    for text in ("The answers B", "He answered B", "unanswer B", "answersheet: B", "My answering: B"):
        assert ends(text) == [], text
    assert ends("The answer: B") == [len("The answer")]
    assert ends("answer") == [6]
    assert ends("The answer is A. My answer: B") == [len("The answer is A. My answer"), len("The answer")]
    assert ends("답변은 B") != []


def test_the_letter_behind_a_label() -> None:
    text = "My answer: (B), since C is not"
    found = letter_after(text, find_labels(text)[0], 4)
    assert found is not None
    assert found.letter == "B"
    assert letter_after(text, find_labels(text)[0], 1) is None


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Answer B", ["B"]),
        ("The answer is B", [" B", "B"]),
        ("Answer: is B", [" B", "is B", "B"]),
        ("The answer is is B", [" B", "is B", "B"]),
        ("Answer is: B or so\nmore", [": B or so", "B or so"]),
    ],
)
def test_what_follows_a_label(text: str, starts: list[str]) -> None:
    """An "is" begins no answer where neither a colon nor another "is" leads it."""
    assert what_follows(text, find_labels(text)[0]) == starts
