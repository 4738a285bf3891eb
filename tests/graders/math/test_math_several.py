# SPDX-License-Identifier: Apache-2.0
"""Answers that say several things: chains of equations, alternatives, ranges. None counts for the one that fits."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.math.cases import HERE, pairs

from newskills.graders.math import equal
from newskills.graders.math.config import MathConfig
from newskills.graders.math.grader import MathGrader
from newskills_math.verdict import NO_SINGLE_ANSWER

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


VALUES = (
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
)
HEDGES = [line for line in (HERE / "hedges.txt").read_text().splitlines() if line[0] != "#"]
FORMS = (r"\boxed{@}", r"\boxed{@} \text{ or } \boxed{12}", "The answer is $@$.", "#### @", "So $@$.")
_value = st.sampled_from([*VALUES, "1", "5", "1000", "0.33", "x"])
_between = st.sampled_from([f" {hedge} " for hedge in HEDGES if "@" not in hedge])
_joined = st.builds(lambda mark, parts: mark.join(parts), _between, st.lists(_value, min_size=1, max_size=5))
_mixed = st.lists(st.tuples(_value, _between), min_size=2, max_size=5).map(
    lambda parts: "".join(value + mark for value, mark in parts) + "12"
)
replies = st.builds(
    lambda form, around, text: form.replace("@", around.replace("@", f" {text} ")),
    st.sampled_from(FORMS),
    st.sampled_from([hedge for hedge in HEDGES if "@" in hedge]),
    _joined | _mixed,
)


@pytest.mark.slow
@given(replies)
def test_no_reply_is_right_for_two_questions(reply: str) -> None:
    """A reply that does not depend on the question cannot beat the most frequent right answer."""
    for config in (MathConfig(), MathConfig(relaxed_extraction=True)):
        grader = MathGrader(config)
        rows = [{"generation": reply, "expected_answer": gold} for gold in VALUES]
        right = [row["expected_answer"] for row in rows if grader.grade(row).outcome == "correct"]
        assert len(right) <= 1


def chains(golds: list[str]) -> list[str]:
    """Constant replies that hold the most frequent of the right answers, and all whole numbers to 999."""
    numbers = [str(number) for number in range(1000)]
    return [
        form.replace("@", mark.join(values))
        for values in (numbers, golds[:4])
        for mark in ("=", r"\approx ", ", ", r" \text{ or } ")
        for form in (r"\boxed{x=y=@}", r"\boxed{\max=@}", "So $x=@$.", "#### @")
    ]


@pytest.mark.slow
@pytest.mark.mirror
@pytest.mark.skipif(not MIRROR, reason="NEWSKILLS_MIRROR, the offline mirror of benchmark data, is not set")
@pytest.mark.parametrize(
    ("benchmark", "field"),
    [("aime24", "expected_answer"), pytest.param("math-500", "answer", marks=pytest.mark.nightly)],
)
def test_a_constant_reply_is_right_no_more_often_than_one_answer(benchmark: str, field: str) -> None:
    files = json.loads((Path(MIRROR) / "MANIFEST.json").read_text())["files"]
    file = next(file["path"] for file in files if file["benchmarks"][0] == benchmark)
    golds = [
        str(json.loads(line)[field]) for line in (Path(MIRROR) / file).read_text().splitlines() if line.strip()
    ]
    distinct = [gold for gold, _ in Counter(golds).most_common(8)]
    for config in (MathConfig(), MathConfig(relaxed_extraction=True)):
        grader = MathGrader(config)
        for reply in chains(distinct):
            rows = [{"generation": reply, "expected_answer": gold} for gold in distinct]
            right = [row["expected_answer"] for row in rows if grader.grade(row).outcome == "correct"]
            assert len(right) <= 1, (reply[:80], right)
