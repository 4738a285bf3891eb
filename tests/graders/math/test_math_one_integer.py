# SPDX-License-Identifier: Apache-2.0
"""Formulas that differ in one integer are told apart without computer algebra, and no two equal ones are."""

from __future__ import annotations

import json

import pytest
from tests.graders.math.cases import HERE

from newskills_math.normalise import tidy_answer
from newskills_math.syntax.nodes import Unreadable
from newskills_math.syntax.parser import parse
from newskills_math.values.equal import Options
from newskills_math.values.one_integer import differ_in_one_integer
from newskills_math.verdict import equal

WITHOUT_ALGEBRA = Options(symbolic=False)
READINGS = HERE / "math_readings.jsonl"


@pytest.mark.parametrize(
    ("gold", "pred"),
    [
        (r"x^{\prime}+\frac{r}{V} x-r c=0", r"x^{\prime}+\frac{r}{V} x-r c=1"),
        (r"\frac{d !}{2 k(d-k) !}", r"\frac{d !}{4 k(d-k) !}"),
        (r"I \frac{d \omega}{d t}+2 B \omega=T", r"I \frac{d \omega}{d t}+5 B \omega=T"),
        (r"\frac{a b}{2}", r"\frac{a b}{0}"),
        (r"[-1,-\frac{1}{2}]", r"[-1,-\frac{1}{0}]"),
    ],
)
def test_one_other_integer_is_another_value(gold: str, pred: str) -> None:
    assert equal(pred, gold, WITHOUT_ALGEBRA)[0] is False


@pytest.mark.parametrize(
    ("gold", "pred"),
    [
        (r"0 \cdot 5 d!", r"0 \cdot 6 d!"),
        (r"d! (2-4)^2", r"d! (6-4)^2"),
        (r"d! \cdot 1^2", r"d! \cdot 1^3"),
        (r"\binom{n!}{2}", r"\binom{n!}{3}"),
        (r"\sin(2 \pi k + d!)", r"\sin(4 \pi k + d!)"),
        (r"d! + 0!", r"d! + 1!"),
        (r"d! + 0.5", r"d! + 0.6"),
        (r"d! < 5", r"d! < 6"),
        (r"\{d!, 2, 2\}", r"\{d!, 2, 3\}"),
    ],
)
def test_what_may_be_equal_all_the_same_is_left_open(gold: str, pred: str) -> None:
    assert not differ_in_one_integer(parse(tidy_answer(gold)), parse(tidy_answer(pred)))


def test_no_equal_pair_differs_in_one_integer() -> None:
    rows = [json.loads(line) for line in READINGS.read_text(encoding="utf-8").splitlines()]
    read = 0
    for row in rows:
        if not row["equal"]:
            continue
        try:
            gold, answer = parse(tidy_answer(row["gold"])), parse(tidy_answer(row["answer"]))
        except Unreadable:
            continue
        read += 1
        assert not differ_in_one_integer(gold, answer), row
    assert read > 300
