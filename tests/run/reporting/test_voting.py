# SPDX-License-Identifier: Apache-2.0
"""Votes of `majority@k` and `rm_majority@k` go by the value of an answer, as its grader compares, not by its text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from newskills.base.records import Row
from newskills.base.store import write_rows
from newskills.run.grade import grade_rows
from newskills.run.reporting.summarize import SummaryOptions, summarize


def modes(folder: Path, samples: Sequence[Row], metric: str = "math", **options: Any) -> dict[str, Row]:
    """metrics.json of one problem."""
    for seed, sample in enumerate(samples):
        write_rows(folder / "sums" / f"output-rs{seed}.jsonl", [{"id": "a", **sample}])
    summarize(folder, lambda benchmark: (metric, options), SummaryOptions())
    made: dict[str, Row] = json.loads((folder / "metrics.json").read_text())["sums"]
    return made


def graded(answers: Sequence[str], gold: str, grader: str = "math") -> list[Row]:
    rows = [{"generation": rf"\boxed{{{answer}}}", "expected_answer": gold} for answer in answers]
    return [dict(row) for row in grade_rows(iter(rows), grader, {})]


@pytest.mark.parametrize(
    ("answers", "gold"),
    [
        (("0.5", r"\frac12", r"\frac{1}{2}", "3", "3"), r"\frac12"),
        (("1,000", "1000", r"\$1000", "7", "7"), "1000"),
        (("x=4", "4", "4.0", "5", "5"), "4"),
        (("(1,2)", "(1, 2)", r"\left(1,2\right)", "9", "9"), "(1,2)"),
        (("(x-1)(x+1)", "x^2-1", "-(1-x^2)", "0", "0"), "x^2-1"),
        ((r"\int_0^1 x^2\,dx", r"\frac13", "0.333333333333333", "9", "9"), r"\frac13"),
    ],
)
def test_right_answers_vote_together_however_they_are_written(
    tmp_path: Path, answers: Sequence[str], gold: str
) -> None:
    assert modes(tmp_path, graded(answers, gold))["majority@5"]["symbolic_correct"] == 100.0


def test_so_do_wrong_answers(tmp_path: Path) -> None:
    numbers = modes(tmp_path, graded(("3", "6/2", "3.0", "5", "5"), "5"))
    assert numbers["majority@5"]["symbolic_correct"] == 0.0
    assert numbers["majority@4"]["symbolic_correct"] == 0.0
    assert numbers["pass@5"]["symbolic_correct"] == 100.0


def test_of_equally_frequent_answers_each_counts_the_same(tmp_path: Path) -> None:
    numbers = modes(tmp_path, graded(("0.5", "3", "1/2", "3.0"), "0.5"))
    assert [numbers[f"majority@{k}"]["symbolic_correct"] for k in (2, 3, 4)] == [50.0, 100.0, 50.0]


def test_records_of_other_systems_vote_by_value_too(tmp_path: Path) -> None:
    answers = (("0.5", True), (r"\frac12", True), (r"\frac{1}{2}", True), ("3", False), ("3", False))
    samples = [{"predicted_answer": answer, "symbolic_correct": right} for answer, right in answers]
    assert modes(tmp_path, samples)["majority@5"]["symbolic_correct"] == 100.0


def test_rewards_are_summed_over_equal_answers(tmp_path: Path) -> None:
    samples = graded(("0.5", r"\frac12", "3"), "0.5")
    for sample, reward in zip(samples, (0.4, 0.4, 0.7), strict=True):
        sample["reward_model_score"] = reward
    numbers = modes(tmp_path, samples)
    assert numbers["rm_majority@3"]["symbolic_correct"] == 100.0
    assert numbers["rm_best@3"]["symbolic_correct"] == 0.0


def test_a_metric_made_of_others_votes_the_same(tmp_path: Path) -> None:
    samples = graded(("0.5", r"\frac12", r"\frac{1}{2}", "3", "3"), "0.5")
    livebench = [{**sample, "task": "sums", "category": "math"} for sample in samples]
    assert modes(tmp_path / "livebench", livebench, "livebench")["majority@5"]["accuracy"] == 100.0
    weighted = [{**sample, "weight": 2} for sample in samples]
    weighted_modes = modes(tmp_path / "weighted", weighted, "weighted-math")
    assert weighted_modes["majority@5"]["weighted_symbolic_correct"] == 100.0
    sections = [{**sample, "subset_for_metrics": "easy"} for sample in samples]
    macro = modes(tmp_path / "macro", sections, "macro")
    assert macro["majority@5"]["macro_accuracy"] == 100.0


def test_a_grader_that_does_not_compare_answers_leaves_votes_to_their_texts(tmp_path: Path) -> None:
    samples = [
        {"predicted_answer": text, "symbolic_correct": right, "grader": f"{grader}@1"}
        for text, right, grader in (("1.0", True, "reasoning_gym"), ("1", True, ""), ("2", False, ""))
    ]
    numbers = modes(tmp_path, [*samples, samples[-1]])
    assert numbers["majority@4"]["symbolic_correct"] == 0.0


def test_a_grader_that_is_gone_leaves_votes_to_their_texts(tmp_path: Path) -> None:
    samples = [{"predicted_answer": text, "symbolic_correct": text == "1", "grader": "mine@1"} for text in "1223"]
    assert modes(tmp_path, samples)["majority@4"]["symbolic_correct"] == 0.0


def test_unscored_samples_have_no_vote(tmp_path: Path) -> None:
    samples = graded(("0.5", r"\frac12", "3", "3", "3"), "0.5")
    for sample in samples[3:]:
        sample |= {"outcome": "unscored", "outcome_cause": "grader", "symbolic_correct": None}
    for seed, sample in enumerate(samples):
        write_rows(tmp_path / "sums" / f"output-rs{seed}.jsonl", [{"id": "a", **sample}])
    report = summarize(tmp_path, lambda benchmark: ("math", {}), SummaryOptions(accept_lost=1.0)).reports[0]
    assert report.numbers["majority@3"]["symbolic_correct"].value == 100.0
