# SPDX-License-Identifier: Apache-2.0
"""Answers that a careless reader takes for each other, and forms that he refuses, judged by hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.math.cases import HERE

from newskills.graders.math import equal
from newskills.graders.math.grader import MathGrader

ROWS = [json.loads(line) for line in (HERE / "math_readings.jsonl").read_text(encoding="utf-8").splitlines()]
CAPITALS = st.text("ABCDHT", min_size=2, max_size=6)


def test_there_are_pairs_of_many_kinds() -> None:
    assert len(ROWS) >= 900
    assert sum(row["equal"] for row in ROWS) >= 350
    assert len({row["kind"] for row in ROWS}) >= 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['gold']} | {row['answer']}")
def test_a_reply_is_read_as_a_teacher_reads_it(row: dict[str, str]) -> None:
    record = {"expected_answer": row["gold"], "generation": f"So we find $\\boxed{{{row['answer']}}}$."}
    assert (MathGrader().grade(record).outcome == "correct") is row["equal"]


@given(CAPITALS, st.randoms(use_true_random=False))
def test_letters_in_another_order_are_another_answer(run: str, chance: object) -> None:
    other = list(run)
    chance.shuffle(other)  # type: ignore[attr-defined]
    assert equal("".join(other), run)[0] is ("".join(other) == run)


@given(st.sampled_from(["xy", "ab", "mn", "abc", "xyz", "pqr"]), st.data())
def test_factors_may_be_exchanged(product: str, data: st.DataObject) -> None:
    other = "".join(data.draw(st.permutations(product)))
    assert equal(other, product)[0] is True
    assert equal(f"2{other}", f"2{product}")[0] is True


@given(st.text(" .,;:!?()'-", max_size=4))
def test_punctuation_in_words_is_no_crash(signs: str) -> None:
    assert equal(rf"5 \text{{{signs}}}", "5")[0] is not None
