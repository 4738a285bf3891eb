# SPDX-License-Identifier: Apache-2.0
"""Values at the borders of what is computed exactly: determinants, powers of 0 and 1, what has no value."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.graders.math import equal
from newskills_math.extraction.masks import mask, unmask
from newskills_math.values.evaluate import NotExact, Undefined, _exact_power, determinant

MATRICES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(-3, 3), min_size=n, max_size=n), min_size=n, max_size=n)
)


@given(MATRICES)
def test_determinants_against_their_definition(rows: list[list[int]]) -> None:
    """A sum over permutations, each with its sign; rows change places where a pivot is 0."""
    expected = 0
    for order in itertools.permutations(range(len(rows))):
        inversions = sum(order[a] > order[b] for a, b in itertools.combinations(range(len(rows)), 2))
        expected += (-1) ** inversions * math.prod(rows[at][column] for at, column in enumerate(order))
    exact = [[Fraction(value) for value in row] for row in rows]
    assert determinant(exact, Fraction(1), lambda value: value) == expected


@pytest.mark.parametrize(
    ("matrix", "value", "other"),
    [
        (r"2 & 0 & 0 \\ 0 & 3 & 0 \\ 0 & 0 & 4", "24", "-24"),
        (r"0 & 1 \\ 1 & 0", "-1", "1"),
        (r"0 & 2 & 0 \\ 3 & 0 & 0 \\ 0 & 0 & 4", "-24", "24"),
        (r"1 & 2 \\ 2 & 4", "0", "1"),
        (r"-5", "-5", "5"),
    ],
)
def test_determinants_in_answers(matrix: str, value: str, other: str) -> None:
    written = rf"\begin{{vmatrix}} {matrix} \end{{vmatrix}}"
    assert equal(written, value)[0] is True
    assert equal(written, other)[0] is False


@pytest.mark.parametrize("exponent", ["10^{9}", "10^{30}", "1000000007"])
@pytest.mark.parametrize(("base", "value"), [("0", "0"), ("1", "1"), ("(-1)", None)])
def test_powers_of_zero_and_one_cost_nothing(base: str, value: str | None, exponent: str) -> None:
    expected = value or ("-1" if exponent.endswith("7") else "1")
    assert equal(f"{base}^{{{exponent}}}", expected)[0] is True
    assert equal(f"{base}^{{{exponent}}}", "2")[0] is False


def test_exact_powers_and_their_borders() -> None:
    huge = Fraction(10**30)
    assert [_exact_power(Fraction(base), huge) for base in (0, 1, -1)] == [0, 1, 1]
    assert _exact_power(Fraction(-1), huge + 1) == _exact_power(Fraction(-1), -huge - 1) == -1
    assert _exact_power(Fraction(-2, 3), Fraction(-3)) == Fraction(-27, 8)
    for exponent in (0, -1, -huge):
        with pytest.raises(Undefined):
            _exact_power(Fraction(0), Fraction(exponent))
    for base in (2, -2, Fraction(1, 2)):
        for exponent in (huge, -huge):
            with pytest.raises(NotExact):
                _exact_power(Fraction(base), exponent)


@pytest.mark.parametrize(("pred", "gold"), [(r"\ln 0", r"\sqrt 2"), (r"\sqrt 2", r"\ln 0")])
def test_what_has_no_value_is_no_number(pred: str, gold: str) -> None:
    assert equal(pred, gold)[0] is False


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("so $x$ and \\(y\\), or \\[z\\]", ["x", "y", "z"]),
        ("$$a$$ is $b$.", ["a", "b"]),
        ("it costs $5 and $6", []),
    ],
)
def test_formulas_are_masked_and_come_back(text: str, formulas: list[str]) -> None:
    found = mask(text)
    assert found.formulas == formulas
    back = unmask(found.text, found.formulas)
    assert all(formula in back for formula in formulas)
