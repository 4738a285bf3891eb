# SPDX-License-Identifier: Apache-2.0
"""Arithmetic chains: an expression whose value is known by construction, and text that nobody meant as one."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.train.data.arithmetic import (
    NoArithmetic,
    equality_chains,
    evaluation_steps,
    expression_value,
    is_wrong,
    split_chain,
)

NUMBERS = st.integers(0, 999).map(lambda n: (str(n), Fraction(n), 0)) | st.integers(1, 999).map(
    lambda n: (f"{n / 8}", Fraction(n, 8), 0)
)


@st.composite
def joined(
    draw: st.DrawFn, inner: st.SearchStrategy[tuple[str, Fraction, int]]
) -> tuple[str, Fraction | None, int]:
    """(text, value, operators) of two expressions, in brackets where they have operators."""
    left, right = draw(inner), draw(inner)
    operator = draw(st.sampled_from("+-*/"))
    if operator == "/" and not right[1]:
        operator = "+"
    texts = [f"({text})" if count else text for text, _, count in (left, right)]
    spaces = draw(st.sampled_from(["", " "]))
    a, b = left[1], right[1]
    worth = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}[operator]
    return f"{texts[0]}{spaces}{operator}{spaces}{texts[1]}", worth, left[2] + right[2] + 1


EXPRESSIONS = st.recursive(NUMBERS, joined, max_leaves=12)


def worth(expression: str) -> Fraction | None:
    try:
        return expression_value(expression)
    except NoArithmetic:
        return None


@given(EXPRESSIONS)
def test_each_step_has_the_value_of_the_whole(expression: tuple[str, Fraction, int]) -> None:
    text, known, count = expression
    try:
        taken = evaluation_steps(text)
    except NoArithmetic:
        assert known.denominator != 1 or "/" in text or "." in text  # some number on the way has no end
        return
    assert len(taken) == max(1, count)
    assert {worth(step) for _, step in taken} == {known}
    assert taken[-1][0] == known


@given(st.lists(st.tuples(st.integers(1, 99), st.sampled_from("+-*")), min_size=3, max_size=8))
def test_signs_and_precedence_are_those_of_python(parts: list[tuple[int, str]]) -> None:
    text = " ".join(f"{number} {sign}" for number, sign in parts)[:-2]
    assert expression_value(text) == eval(text)


@given(st.text(alphabet="0123456789+-*/=(). \tx,^\n\\", max_size=80))
def test_any_text_is_survived_and_rewritten_chains_stay_right(text: str) -> None:
    for chain in equality_chains(text):
        assert text[chain.start : chain.start + len(chain.text)] == chain.text
        is_wrong(chain, 1e-4)
        if (longer := split_chain(chain)) is not None:
            assert len({worth(side) for side in longer.split("=")}) == 1


@pytest.mark.parametrize(
    ("text", "longer"),
    [
        ("1 + 2 + 3 + 4 = 10", "1 + 2 + 3 + 4 = 3 + 3 + 4 = 6 + 4 = 10"),
        ("1 + 7 * 19 = 134", "1 + 7 * 19 = 1 + 133 = 134"),
        ("3 * (1 + 7) / 4 = 6", "3 * (1 + 7) / 4 = 3 * 8 / 4 = 24 / 4 = 6"),
        ("4 * (1 - 3) + 2 = -6", "4 * (1 - 3) + 2 = 4 * (-2) + 2 = -8 + 2 = -6"),
        ("10/4+1=3.5", "10/4+1 = 2.5 + 1 = 3.5"),
    ],
)
def test_one_operation_at_a_time(text: str, longer: str) -> None:
    [chain] = equality_chains(f"So we get ${text}$.")
    assert split_chain(chain) == longer


@pytest.mark.parametrize(
    "text", ["1 + 2 + 3 = 7", "1 + 2 + 3 = 3 + 3 = 6", "1 / 3 + 1 = 4 / 3", "2 ** 3 + 1 = 9", "1 / 0 + 1 = 1"]
)
def test_chains_that_are_not_rewritten(text: str) -> None:
    assert [split_chain(chain) for chain in equality_chains(text)] == [None]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("1 + 2 + 3 + 4 = 10", False),
        ("3 * (1 + 7) / 4 = 3 * 8 / 4 = 100", True),
        ("1 / 3 + 1 = 1.3333", False),
        ("1 / 3 + 1 = 1.333", True),
        ("1 / 3 + 1 = 1.3", True),
        ("2 ** 3 + 1 = 10", False),
        ("1 - 1 + 0 = 0", False),
        ("1 + 1 + 1 = (", False),
    ],
)
def test_wrong_beyond_the_tolerance_only(text: str, wrong: bool) -> None:
    assert [is_wrong(chain, 1e-4) for chain in equality_chains(text)] == [wrong]


@pytest.mark.parametrize(
    "text",
    [
        "2x + 3 + 4 = 10",
        "10,000 + 5 + 3 = 10,008",
        "1 + 2 + 3 = 6x",
        "1 + 2 + 3 = 6^2",
        "1 + 2 + 3 = 3 \\cdot 2",
        "\\frac{1}{2} + 3 + 4 = 7.5",
        "a_1 + 2 + 3 = 9",
        "1 = 1",
        "1 + 2 = 4",
    ],
)
def test_pieces_of_something_larger_are_no_chains(text: str) -> None:
    assert list(equality_chains(text)) == []


def test_a_chain_ends_with_its_line() -> None:
    assert [chain.text for chain in equality_chains("1 + 1 + 1 = 3\n2 + 2 + 2 = 6")] == [
        "1 + 1 + 1 = 3",
        "2 + 2 + 2 = 6",
    ]


@pytest.mark.parametrize(
    "text", ["(" * 200_000, "1+" * 200_000 + "1=1", "9" * 200_000 + "+1+1=2", "((1)" * 50_000 + "="]
)
def test_giants_are_no_arithmetic(text: str) -> None:
    start = time.process_time()
    assert not any(is_wrong(chain, 1e-4) or split_chain(chain) for chain in equality_chains(text))
    assert time.process_time() - start < 5
