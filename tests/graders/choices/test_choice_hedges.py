# SPDX-License-Identifier: Apache-2.0
"""Replies that name several options have no answer; those that change their mind, or list the options, have one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.base.records import Row

OPTIONS = {"A": "alpha stone", "B": "beta river", "C": "gamma cloud", "D": "delta field"}
GRADER = plain_grader("multichoice", {})
HEDGES = (
    "A, B, C, D",
    "A or B",
    "Answer: A B C D",
    "Answer: (A) (B) (C) (D)",
    "Answer: A. B. C. D.",
    "Answer: A, B",
    "The answers are A, B, C, D",
    "\\boxed{A}\\boxed{B}\\boxed{C}\\boxed{D}",
    "\\boxed{A} \\boxed{B}",
    "\\boxed{A}\n\\boxed{B}",
    "\\boxed{A} is correct. \\boxed{B} is correct.",
    "\\boxed{A B C D}",
    "\\boxed{ABCD}",
    "\\boxed{A/B}",
    "\\boxed{\\text{A or B}}",
    "A is correct. B is correct. C is correct. D is correct.",
    "Option A is correct. Option B is correct.",
    '{"answer": ["A", "B"]}',
    '{"answer": "A", "answer": "B"}',
    '[{"answer": "A"}, {"answer": "B"}]',
    '{"choice": "A", "choice": "B"}',
    "Answer: A\nAnswer: B\nAnswer: C\nAnswer: D",
    "The answer is A. The answer is B. The answer is C. The answer is D.",
    "Answer: A) alpha stone\nAnswer: B) beta river",
    "Answer:\nA) alpha stone\nB) beta river\nC) gamma cloud\nD) delta field",
    "Answer: A) alpha stone B) beta river C) gamma cloud D) delta field",
    "Answer:\nA\nB\nC\nD",
    "A\nB\nC\nD",
    "(A) (B) (C) (D)",
    "A. B. C. D.",
    "A B C D",
    "A) alpha stone\nB) beta river\nC) gamma cloud\nD) delta field",
    "Answer: alpha stone, beta river",
    "I choose A. I choose B.",
    "So A. So B.",
    "The answer is A and B.",
    "The answer is either A or B.",
    "Answer: A & B",
    "**Answer: A, B, C, and D**",
    "Both A and B are correct.",
    "All of A, B, C and D are correct.",
    "Answer: not B",
    "The answer is not B.",
    "Answer: A) alpha stone is correct. Answer: B) beta river is correct.",
)
ONE_ANSWER = (
    ("A) alpha stone\nB) beta river\nC) gamma cloud\nD) delta field\n\nAnswer: B", "B"),
    ("A) alpha stone\nB) beta river\nC) gamma cloud\nD) delta field\n\nB", "B"),
    ("Let's see.\nA. alpha stone is too long\nC. no\n\n**B**", "B"),
    ("Answer: A. But no.\nAnswer: B", "B"),
    ("Answer: A\n\nWait, that is wrong.\n\nAnswer: B", "B"),
    ("The answer is (A). No, wait.\nThe answer is (B).", "B"),
    ("First answer: A\nFinal answer: B", "B"),
    ("Answer: B. A is wrong.", "B"),
    ("Answer: B (not A)", "B"),
    ("Answer: B, not A", "B"),
    ("Answer: B. A) is too short.", "B"),
    ("\\boxed{A} ... no, \\boxed{B}", "B"),
    ("I thought \\boxed{A} at first. The right one is \\boxed{B}.", "B"),
    ("\\boxed{\\text{B because C is wrong}}", "B"),
    ("The answer could be B, but I would say D.", "D"),
    ("The answer might be B, but it is D.", "D"),
    ("The answer is B, but A is also plausible.", "B"),
    ("Answer: B) beta river\n\nA) alpha stone is wrong since", "B"),
    ("Answer: B\n\nExplanation: A) alpha stone is wrong", "B"),
    ("The correct answer is B.\n\nAnswer: rivers are hottest", "B"),
)
"""Replies that list the options, weigh them, or change their mind, and the letter that they come to."""


def read(reply: str, options: Row | None = None) -> str | None:
    record = {"generation": reply, "expected_answer": "B", **(OPTIONS if options is None else options)}
    letter = GRADER.grade(record).fields["predicted_answer"]
    assert letter is None or isinstance(letter, str)
    return letter


@pytest.mark.parametrize("reply", HEDGES)
@pytest.mark.parametrize("gold", "ABCD")
def test_a_hedge_is_right_for_no_gold(reply: str, gold: str) -> None:
    assert GRADER.grade({"generation": reply, "expected_answer": gold, **OPTIONS}).outcome == "no_answer"


@pytest.mark.parametrize("reply", [reply for reply in HEDGES if "stone" not in reply])
def test_a_hedge_is_none_without_the_options_either(reply: str) -> None:
    assert read(reply, {}) is None


@pytest.mark.parametrize(("reply", "letter"), ONE_ANSWER)
def test_one_answer_after_all(reply: str, letter: str) -> None:
    assert read(reply) == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("Thoughts.\n\n\\(A\\)", "A"),
        ("Thoughts.\n\n\\[C\\]", "C"),
        ("Thoughts.\n【B】", "B"),
        ("Thoughts.\n<D>", "D"),
        ("Thoughts.\n「B」", "B"),
        ("Thoughts.\n（C）", "C"),
        ("Thoughts.\n$\\mathrm{x}$", None),
        ("Answer: B is incorrect", None),
        ("Answer: B is not correct. Answer: C", "C"),
        ("The answer cannot be B. It must be C.", "C"),
    ],
)
def test_letters_in_brackets_and_letters_that_are_denied(reply: str, letter: str | None) -> None:
    assert read(reply) == letter


WAYS = (
    "Answer: {}", "The answer is {}.", "\\boxed{{{}}}", "Option {} is correct.", "{} is correct.", "({})",
    "I choose {}.", '"answer": "{}"', "答案：{}", "So {}.", "**{}**", "Die Antwort ist {}.", "选项{}是正确的。",
    "So I choose option {}.",
)  # fmt: skip


@given(st.sampled_from(WAYS), st.permutations("ABCD"), st.integers(2, 4), st.sampled_from((" ", "\n", "\n\n")))
def test_all_options_one_after_the_other(way: str, order: list[str], count: int, between: str) -> None:
    assert read(between.join(way.format(letter) for letter in order[:count])) is None


def test_guesses_at_the_texts_of_options_are_no_answer() -> None:
    """A reply cannot list what may be an option's text and get the one that is."""
    guesses = (
        "unknown",
        "not known",
        "cannot be determined",
        "not enough information",
        "undetermined",
        "can't answer",
    )
    for right in guesses:
        options = {"A": "the nurse", "B": "the driver", "C": right}
        for form in ("Answer: {}", "The answer is: {}"):
            reply = "\n".join(form.format(guess) for guess in sorted(guesses, key=lambda guess: guess != right))
            assert read(reply, options) is None, reply
        listed = [f"({letter}) {guess} is correct." for guess in guesses for letter in "ABC"]
        assert read(" ".join(listed), options) is None
        assert (
            read("\n".join(f"I choose ({letter}) {guess}" for guess in guesses for letter in "ABC"), options)
            is None
        )


def test_an_expression_takes_no_letter_out_of_a_word() -> None:
    record = {"expected_answer": "A", "extract_regex": r"[Ll]a respuesta es:?\s*\(?([A-J])\)?", **OPTIONS}
    assert GRADER.grade({**record, "generation": "La respuesta es Ausente."}).outcome == "no_answer"
    assert (
        GRADER.grade({**record, "generation": "La respuesta es Ausente. La respuesta es (A)"}).outcome == "correct"
    )
