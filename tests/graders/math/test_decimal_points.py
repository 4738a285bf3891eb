# SPDX-License-Identifier: Apache-2.0
"""The point of `.5` is a part of the number, never punctuation."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.graders.math import equal
from newskills_math.normalise import tidy_answer


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        (".5", ".5"),
        ("$.5$", ".5"),
        (" .5. ", ".5"),
        (": .5,", ".5"),
        ("...5", "5"),
        (". 5", "5"),
        ("5.", "5"),
        (".", ""),
    ],
)
def test_only_punctuation_is_stripped(text: str, tidied: str) -> None:
    assert tidy_answer(text) == tidied


@pytest.mark.parametrize(
    ("pred", "gold"),
    [
        ("x=0.35625", ".35625"),
        ("x=.35625", "0.35625"),
        (r"0.35 \approx 0.4", ".35"),
        ("0.5, 0.6", ".5, .6"),
        ("x=0.0000672", ".0000672"),
        ("$.48$", "0.48"),
        (r"0.72\text{ m}", r"$.72 \mathrm{~m}$"),
        ("heads with probability .5", "heads with probability 0.5"),
    ],
)
def test_a_bare_point_has_a_zero_before_it(pred: str, gold: str) -> None:
    assert equal(pred, gold)[0] is True
    assert equal(gold, pred)[0] is True


@pytest.mark.parametrize(
    ("pred", "gold"),
    [
        ("x=35625", ".35625"),
        ("x=5", ".5"),
        ("5", ".5"),
        (r"35 \approx 40", ".35"),
        ("5, 6", ".5, .6"),
        ("heads with probability 5", "heads with probability .5"),
    ],
)
def test_a_number_without_its_point_is_another(pred: str, gold: str) -> None:
    assert equal(pred, gold)[0] is False
    assert equal(gold, pred)[0] is False


@given(st.decimals(min_value=Decimal("0.0001"), max_value=Decimal("0.9999"), places=4))
def test_any_decimal_below_one(number: Decimal) -> None:
    with_zero = f"{number:f}"
    bare = with_zero.removeprefix("0")
    for dress in ("{}", "${}$", "x={}", "{}.", r"\boxed{{{}}}"):
        assert equal(dress.format(with_zero), bare)[0] is True
        assert equal(dress.format(bare), with_zero)[0] is True
        assert equal(dress.format(bare.removeprefix(".")), bare)[0] is False


@pytest.mark.parametrize(
    ("grader", "config", "record"),
    [
        ("exact", {}, {"generation": "The answer is 5", "expected_answer": ".5"}),
        ("dsbench", {"relaxed_extraction": False}, {"generation": r"\boxed{5}", "expected_answer": ".5"}),
        ("multichoice", {}, {"generation": r"\boxed{5}", "expected_answer": "B", "options": ["7", ".5", "3"]}),
    ],
)
def test_other_graders_keep_the_point_too(grader: str, config: dict[str, Any], record: dict[str, Any]) -> None:
    assert plain_grader(grader, config).grade(record).outcome != "correct"
