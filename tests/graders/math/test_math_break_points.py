# SPDX-License-Identifier: Apache-2.0
"""Expressions that agree nearly everywhere, or to hundreds of digits, and are not the same; and their equal twins."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.graders.math import equal


@pytest.mark.parametrize(
    ("pred", "gold", "correct"),
    [
        ("|x+50|", "x+50", False),
        ("|x-50|", "x-50", False),
        ("|x-50|", "|50-x|", True),
        ("|x+50|", r"\sqrt{(x+50)^2}", True),
        (r"\sqrt{(x+50)^2}", "x+50", False),
        (r"\sqrt{x^2+100x+2500}", "x+50", False),
        (r"\sqrt{x^2+100x+2500}", "|x+50|", True),
        ("|x+k|-k", "x", False),
        ("|x+1000|-1000", "x", False),
        ("|x-50|+|x-51|", "|2x-101|", False),
        ("|x-50|+|x-51|", "|51-x|+|50-x|", True),
        ("|x^2-100x+2499|", "x^2-100x+2499", False),
        ("|x^2-100x+2499|", "|(x-49)(x-51)|", True),
        ("|x^2+1|", "x^2+1", True),
        (r"\max(x,-100)", "x", False),
        (r"\max(x,y)", r"\frac{x+y+|x-y|}{2}", True),
        (r"\max(x,y+70)", "y+70", False),
        (r"\min(x,100)", "x", False),
        (r"\lfloor n/50 \rfloor", "0", False),
        (r"\lfloor \frac{n}{2} \rfloor + \lceil \frac{n}{2} \rceil", "n", True),
        (r"\arcsin(\sin x)", "x", False),
        (r"\sqrt{x+10}\sqrt{x-10}", r"\sqrt{x^2-100}", True),
        ("y=|x+50|", "y=x+50", False),
        ("y=|x+50|", "y=|-x-50|", True),
        (r"\sqrt{9^{1010}-2}", r"\sqrt{9^{1010}-1}", False),
        (r"\sqrt{9^{1010}-1}", r"\sqrt{81^{505}-1}", True),
        (r"\sqrt{10^{2000}+1}", "10^{1000}", False),
        (r"\sqrt{10^{2000}}", "10^{1000}", True),
        (r"\sqrt[3]{10^{3000}+1}", "10^{1000}", False),
        (r"\sqrt{10^{3000}+1}-\sqrt{10^{3000}}", "0", False),
        (r"\sqrt{10^{3000}+1}-\sqrt{1+10^{3000}}", "0", True),
        (r"\sqrt{1+10^{-2000}}", "1", False),
        ("e^{-3000}+1", "1", False),
        ("e^{-3000}+1", "1+e^{-3000}", True),
        (r"\sqrt{2\cdot 10^{900}}+1", r"10^{450}\sqrt{2}", False),
        (r"\sqrt{2\cdot 10^{900}}", r"10^{450}\sqrt{2}", True),
    ],
)
def test_breaks_far_out_and_differences_far_down(pred: str, gold: str, correct: bool) -> None:
    assert equal(pred, gold)[0] is correct
    assert equal(gold, pred)[0] is correct


@pytest.mark.parametrize(
    ("pred", "gold", "correct"),
    [
        ("(1,2,3]", "(1,2,3)", False),
        ("[1,2,3)", "(1,2,3)", False),
        ("(1,2,3]", "[1,2,3]", False),
        ("(1,2,3]", "1,2,3", False),
        ("(1, 2, 3]", "(1,2,3]", True),
        ("[1,2,3]", "(1,2,3)", True),
        ("(1,2]", "(1,2)", False),
        (r"\left(1,2\right]", "(1,2]", True),
        ("(5]", "5", False),
        ("[5)", "5", False),
        ("(5)", "5", True),
        (r"\{1,2,3)", r"\{1,2,3\}", False),
        (r"(1,2,3\}", "(1,2,3)", False),
        ("(1,2,3", "(1,2,3)", False),
    ],
)
def test_brackets_that_do_not_belong_together(pred: str, gold: str, correct: bool) -> None:
    assert equal(pred, gold)[0] is correct
    assert equal(gold, pred)[0] is correct


@settings(max_examples=60)
@given(st.integers(-10_000, 10_000), st.integers(1, 40))
def test_a_break_anywhere(place: int, slope: int) -> None:
    inside = f"{slope}x{place:+d}"
    assert equal(f"|{inside}|", inside)[0] is False
    assert equal(f"|{inside}|", rf"\sqrt{{({inside})^2}}")[0] is True
    assert equal(f"|{inside}|+{inside}", f"2({inside})")[0] is False


@settings(max_examples=30)
@given(st.integers(2, 30), st.integers(200, 2000), st.integers(1, 9))
def test_radicals_of_huge_numbers(base: int, power: int, more: int) -> None:
    root = rf"\sqrt{{{base}^{{{power}}}+{more}}}"
    assert equal(root, rf"\sqrt{{{more + 1}+{base}^{{{power}}}}}")[0] is False
    assert equal(root, rf"\sqrt{{{more}+{base}\cdot {base}^{{{power - 1}}}}}")[0] is True
