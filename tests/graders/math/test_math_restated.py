# SPDX-License-Identifier: Apache-2.0
"""A piece of the problem that equals the answer is none; a value that the problem names may be the answer."""

from __future__ import annotations

import pytest

from newskills.graders.math.grader import MathGrader

REPEATED = [
    (r"Compute $17^9 \div 17^7$.", "289", r"17^9 \div 17^7"),
    (r"Compute $17^9 \div 17^7$.", "289", r"Compute $17^9 \div 17^7$."),
    (r"Factor $x^2-1$.", "(x-1)(x+1)", "x^2 - 1"),
    (r"Expand $\left(x+1\right)^2$.", "x^2+2x+1", "(x+1)^2"),
    (r"Compute $\dbinom{15}{2}$.", "105", r"\binom{15}{2}"),
    (r"What is $\frac{1}{2}+\frac{1}{3}$?", r"\frac{5}{6}", r"\dfrac{1}{2} + \dfrac{1}{3}"),
    (r"Evaluate $|2-7|\cdot 3$.", "15", r"|2-7| \cdot 3"),
    (r"Convert $7 \mathrm{mi}$ to yards.", r"12320 \mathrm{yd}", r"Convert $7 \mathrm{mi}$ to yards"),
    (r"Rationalize the denominator: $\frac{5}{\sqrt{3}}$.", r"\frac{5\sqrt{3}}{3}", r"\frac{5}{\sqrt{3}}"),
]
NAMED = [
    (r"Which is larger, $\frac{1}{2}$ or $0.4$?", "0.5", r"\frac{1}{2}"),
    (r"Is it $2^{10}$ or $10^3$ that is larger?", "2^{10}", "2^{10}"),
    (r"Is $y = 3x-4$ or $y=2x+1$ steeper?", "y=3x-4", "y = 3x - 4"),
    (r"A circle has the radius $\sqrt{2}$. How long is half of its diameter?", r"\sqrt2", r"\sqrt{2}"),
    ("Does $5$ or $6$ divide $10$?", "5", "5"),
    ("Is the self-adjoint operator or the other one bounded?", "self-adjoint", r"\text{self-adjoint}"),
    ("What is 12 + 30?", "42", "42"),
    ("Is the minimum at $x = 2$ or at $x = -3$?", "2", "x = 2"),
    ("Is the minimum at $x = 2$ or at $x = -3$?", "-3", "x = -3"),
]


def graded(problem: str, gold: str, answer: str, key: str = "problem") -> tuple[str, str]:
    score = MathGrader().grade({key: problem, "expected_answer": gold, "generation": rf"\boxed{{{answer}}}"})
    return score.outcome, score.why


@pytest.mark.parametrize("key", ["problem", "question"])
@pytest.mark.parametrize(("problem", "gold", "answer"), REPEATED)
def test_what_only_repeats_the_problem_is_wrong(problem: str, gold: str, answer: str, key: str) -> None:
    assert graded(problem, gold, answer, key) == ("wrong", "the answer only repeats the problem (box)")
    assert graded(problem, gold, gold, key)[0] == "correct"
    assert graded("", gold, answer, key)[0] in ("correct", "wrong"), (
        "without a problem there is nothing to compare"
    )


@pytest.mark.parametrize(("problem", "gold", "answer"), NAMED)
def test_values_that_a_problem_names_may_be_its_answer(problem: str, gold: str, answer: str) -> None:
    assert graded(problem, gold, answer)[0] == "correct"


def test_an_accepted_answer_is_none_that_repeats() -> None:
    record = {"problem": "Write $2^3$ as a power.", "expected_answer": "8", "accepted_answers": ["2^3"]}
    assert MathGrader().grade({**record, "generation": r"\boxed{2^3}"}).outcome == "correct"


def test_a_row_may_have_two_texts_of_its_problem() -> None:
    record = {"problem": "Exercise 7.", "question": "Write $2^3$ as a number.", "expected_answer": "8"}
    assert MathGrader().grade({**record, "generation": r"\boxed{2^3}"}).outcome == "wrong"
