# SPDX-License-Identifier: Apache-2.0
"""Answers that say several things: chains of equations, alternatives, ranges. None is believed for the one that fits."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.cases import pairs

from newskills.graders.math import equal
from newskills.graders.math.config import MathConfig
from newskills.graders.math.grader import MathGrader
from newskills.graders.math.verdict import NO_SINGLE_ANSWER

MIRROR = os.environ.get("NEWSKILLS_MIRROR", "")


@pytest.mark.parametrize(("pred", "gold"), pairs("chains_equal.txt"))
def test_a_chain_says_its_last_side_of_all_its_names(pred: str, gold: str) -> None:
    assert equal(pred, gold)[0] is True
    assert equal(pred, pred)[0] is True


@pytest.mark.parametrize(("pred", "gold"), pairs("chains_different.txt"))
def test_a_chain_says_nothing_else(pred: str, gold: str) -> None:
    assert equal(pred, gold)[0] is False


@pytest.mark.parametrize(
    "pred",
    [
        "72=73",
        r"74\approx73",
        "x=y=72=73",
        "72=x=73",
        r"x=73\text{ cm}=72\text{ cm}",
        r"\max=72=73",
        r"\int_0^1 f(x)dx=72=73",
        "73=" + "=".join(map(str, range(1000))),
        "1=2, 73=73",
        "(72=73)",
        r"\frac{219}{3}\approx73.2",
    ],
)
def test_sides_that_differ_are_no_single_answer(pred: str) -> None:
    assert equal(pred, "73") == (False, NO_SINGLE_ANSWER)
    score = MathGrader().grade({"generation": rf"\boxed{{{pred}}}", "expected_answer": "73"})
    assert (score.outcome, score.why) == ("wrong", f"{NO_SINGLE_ANSWER} (box)")


VALUES = [
    "0",
    "3",
    "-7",
    "12",
    "73",
    "204",
    r"\frac{1}{3}",
    r"\frac{22}{7}",
    "0.25",
    "2.75",
    r"\sqrt{2}",
    r"3\pi",
    "x^2+1",
    "(1,2)",
]
_value = st.sampled_from([*VALUES, "1", "5", "1000", "0.33", "x"])
_between = st.sampled_from(
    [
        "=",
        r"\approx ",
        r"\equiv ",
        r"\cong ",
        r"\sim ",
        r"\neq ",
        "<",
        r"\le ",
        ", ",
        ";",
        r" \text{ or } ",
        r" \text{ and } ",
    ]
    + [
        " or ",
        r" \text{ or maybe } ",
        r"\implies ",
        r"\iff ",
        r"\to ",
        r"\cup ",
        "/",
        r"\quad ",
        r"\\",
        "|",
        r"\mid ",
        r"\&",
        ":",
    ]
    + [r"\pm ", " (or ", " [", r"\lor ", ":=", "==", "..", r"\ldots ", r",\ldots,", "=x=", "=y=", ", x="]
)
_around = st.sampled_from(
    [
        "{}",
        "x={}",
        "x=y={}",
        "{}=x",
        r"\{{{}\}}",
        "({})",
        "[{}]",
        r"x\in\{{{}\}}",
        r"\text{{{}}}",
        r"\max={}",
        r"\angle A={}",
        "f(x)={}",
    ]
    + [
        r"\begin{{cases}}{}\end{{cases}}",
        r"\begin{{array}}{{c}}{}\end{{array}}",
        r"\begin{{pmatrix}}{}\end{{pmatrix}}",
        r"\pm {}",
    ]
    + [
        r"\text{{one of }}{}",
        r"\text{{either }}{}",
        r"|x|\le {}",
        r"x\ge {}",
        r"{}\pm 0",
        r"{}, k\in\mathbb{{Z}}",
        r"\substack{{{}}}",
        r"{}\ldots",
    ]
)
_joined = st.builds(lambda between, parts: between.join(parts), _between, st.lists(_value, min_size=1, max_size=5))
_mixed = st.builds(
    lambda parts, marks: "".join(a + b for a, b in zip(parts, [*marks, ""], strict=False)),
    st.lists(_value, min_size=2, max_size=5),
    st.lists(_between, min_size=4, max_size=4),
)
_reply = st.builds(lambda around, text: around.format(text), _around, _joined | _mixed)


@pytest.mark.slow
@given(
    _reply,
    st.sampled_from(
        [r"\boxed{{{}}}", r"\boxed{{{}}} \text{{ or }} \boxed{{12}}", "The answer is ${}$.", "#### {}", "So ${}$."]
    ),
)
def test_no_reply_is_right_for_two_questions(text: str, form: str) -> None:
    """A reply that does not depend on the question cannot beat the most frequent right answer."""
    row = {"generation": form.format(text)}
    for config in (MathConfig(), MathConfig(relaxed_extraction=True)):
        grader = MathGrader(config)
        right = [gold for gold in VALUES if grader.grade(row | {"expected_answer": gold}).outcome == "correct"]
        assert len(right) <= 1, (row, right)
