# SPDX-License-Identifier: Apache-2.0
"""RewardBench 2: answers in a fixed order, one row for each answer of a tie, and the mean of six subsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.test_raw_fixtures import _prepared

from newskills.benchmarks.judge.rewardbench2 import score


def test_a_tie_becomes_a_row_for_each_answer(tmp_path: Path) -> None:
    _, rows = _prepared("rewardbench2.ties.jsonl", tmp_path)
    assert [(row["answer"], row["is_right"]) for row in rows] == [("red", True), ("blue", True), ("brown", False)]
    assert {(row["tie_kind"], row["question_id"]) for row in rows} == {("tied", "3")}


def test_the_best_answer_is_named_by_its_letter(tmp_path: Path) -> None:
    _, rows = _prepared("rewardbench2.choices.jsonl", tmp_path)
    (row,) = rows
    assert row[row["expected_answer"]] == "7"
    assert f"Reply {row['expected_answer']}:\n7" in row["answers"]


def test_ties_are_one_of_six() -> None:
    metrics = {
        "rewardbench2.choices": {"pass@1": {"macro_accuracy": 60.0}},
        "rewardbench2.ties": {"pass@1": {"ties_score": 90.0}},
    }
    assert score(metrics) == {"score": pytest.approx(65.0), "choices": 60.0, "ties": 90.0}
