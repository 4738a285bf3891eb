# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.benchmarks.text import boxed_contents, choices, number_text, rename_columns, split_options


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (27.0, "27"), (-1.0, "-1"), (2.5, "2.5"), (1e16, "10000000000000000"), (7, "7"),
        (" 2,125", "2125"), ("1,450,000", "1450000"), ("-10", "-10"), ("65.0", "65"), ("134.04", "134.04"),
        ("1,3", "1,3"), ("11; 12; 13", "11; 12; 13"), ("(1,234)", "(1234)"), ("Yes", "Yes"), ("+4.", "+4"),
    ],
)  # fmt: skip
def test_numbers(value: float | str, expected: str) -> None:
    assert number_text(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a \boxed{2} b", ["2"]),
        (r"\boxed{\frac{1}{2}} or \boxed{ 3 }", [r"\frac{1}{2}", " 3 "]),
        (r"\boxed 9$", ["9"]),
        (r"\boxed{\boxed{11}\times\boxed{20}} \boxed{12}", [r"\boxed{11}\times\boxed{20}", "12"]),
        (r"\boxed{\{1,2\}}", [r"\{1,2\}"]),
        (r"\boxed{never closed", []),
        ("none", []),
    ],
)
def test_boxes(text: str, expected: list[str]) -> None:
    assert boxed_contents(text) == expected


@given(st.text(alphabet="\\boxed{} ab", max_size=60))
def test_boxes_of_any_text_end(text: str) -> None:
    assert all(isinstance(found, str) for found in boxed_contents(text))


def test_choices() -> None:
    assert choices("\nWhy?\n", ["so", "thus"]) == {
        "problem": "Why?\n\nA) so\nB) thus",
        "options": "A) so\nB) thus",
        "A": "so",
        "B": "thus",
    }
    assert choices("Why?", {"1": "so", "2": "thus"}) == choices("Why?", ["so", "thus"])


@pytest.mark.parametrize("options", [[], ["one"], "ab", [["a"], [1]], ["a", None], [str(n) for n in range(27)]])
def test_what_cannot_be_options(options: Any) -> None:
    with pytest.raises(ValueError, match="option"):
        choices("Why?", options)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("A) 12 B) 15 C) 20", ["12", "15", "20"]),
        ("a ) 38 , b ) 27.675 , c ) 30 , d ) data not sufficient , e ) none of these",
         ["38", "27.675", "30", "data not sufficient", "none of these"]),
        ("A. in set A B. in set B B) twice", ["in set A", "in set B B) twice"]),
        (r"A) $\left(a, b)\right)$ B) $(a)$", [r"$\left(a, b)\right)$", "$(a)$"]),
        ("A) one\nB) two", ["one", "two"]),
        ("['a ) 16 %', 'b ) 20 %', 'c ) none']", ["16 %", "20 %", "none"]),
        ("A) $f'$ B) $f''", ["$f'$", "$f''"]),
    ],
)  # fmt: skip
def test_options_of_one_text(text: str, options: list[str]) -> None:
    assert split_options(text) == options


def test_a_text_without_options() -> None:
    with pytest.raises(ValueError, match="no lettered options"):
        split_options("A) only one")


def test_columns_get_the_names_of_prompts() -> None:
    row = {"question": "1+1?", "answer": 2, "level": 3}
    assert rename_columns(row, question="problem", answer="expected_answer") == {
        "problem": "1+1?", "expected_answer": "2", "level": 3
    }  # fmt: skip
    with pytest.raises(KeyError, match="solution"):
        rename_columns(row, solution="reference_solution")
    with pytest.raises(ValueError, match="nothing in the column 'answer'"):
        rename_columns(row | {"answer": None}, answer="expected_answer")
