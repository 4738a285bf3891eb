# SPDX-License-Identifier: Apache-2.0
"""Points of contests: of each subtask the best of all answers to a problem."""

from __future__ import annotations

from typing import Any

import pytest

from newskills.base.records import Row
from newskills.metrics import make_metric

LOST: Row = {
    "outcome": "unscored",
    "outcome_cause": "sandbox",
    "is_correct": True,
    "compiled": True,
    "score": 1000,
}


def answer(name: str, correct: bool, scores: dict[str, float] | None, **more: Any) -> Row:
    results = None if scores is None else {kind: {"score": score} for kind, score in scores.items()}
    return {"name": name, "is_correct": correct, "test_case_results": results, **more}


def summary_of(metric_name: str, *problems: list[Row]) -> dict[str, Row]:
    metric = make_metric(metric_name)
    for samples in problems:
        metric.update(samples)
    return metric.metrics()


def test_each_subtask_counts_with_its_best_answer() -> None:
    modes = summary_of(
        "ioi",
        [answer("a", False, {"1": 10, "2": 0}), answer("a", False, {"1": 5, "2": 7.5}), {**LOST, "name": "a"}],
        [answer("b", True, {"1": -3}), answer("b", False, None), answer("b", False, {})],
    )
    assert modes["pass@3"]["total_score"] == 17.5
    assert modes["pass@3"]["per_problem_subtask_scores"] == {"a": {"1": 10.0, "2": 7.5}, "b": {"1": 0.0}}
    assert "total_score" not in modes["pass@1"]
    assert modes["pass@1"]["accuracy"] == pytest.approx(100 / 6)


def test_answers_belong_to_the_problem_that_they_name_else_to_its_id() -> None:
    row = summary_of(
        "ioi",
        [answer("a", False, {"1": 1}, id="first")],
        [answer("a", False, {"1": 2}, id="second")],
        [answer("", False, {"1": 3}, id="third")],
    )["pass@1"]
    assert row["per_problem_subtask_scores"] == {"a": {"1": 2.0}, "third": {"1": 3.0}}
    assert row["total_score"] == 5


def test_the_mode_with_the_summary_is_shown() -> None:
    metric = make_metric("ioi")
    metric.update([answer("a", True, {}, predicted_answer="x")] * 3)
    assert metric.shown() == ("pass@1[avg-of-3]", "majority@3", "pass@3")
    single = make_metric("ioi")
    single.update([answer("a", True, {})])
    assert single.shown() == ("pass@1",)
    assert single.metrics()["pass@1"]["total_score"] == 0.0
    assert single.columns == ("num_entries", "avg_tokens", "gen_seconds", "total_score", "accuracy", "no_answer")
    assert make_metric("ioi").metrics() == {}


def outputs(*scores: float) -> Row:
    return {"outputs": [{"score": score} for score in scores]}


@pytest.mark.parametrize(
    ("results", "sample", "test"),
    [
        ({"sample": outputs(1, 1), "test": outputs(1, 0.99)}, True, False),
        ({"sample": outputs(0), "test": outputs(1, 2)}, False, True),
        ({"test": outputs()}, False, True),
        ({}, False, False),
        (None, False, False),
    ],
)
def test_a_problem_is_right_where_all_outputs_of_some_answer_are(
    results: Row | None, sample: bool, test: bool
) -> None:
    nothing = {"name": "a", "is_correct": False, "test_case_results": None}
    row = summary_of("icpc", [{**nothing, "test_case_results": results}, nothing])["pass@2"]
    assert row["per_problem"] == {"a": {"sample_correct": sample, "test_correct": test}}


def test_solved_problems_and_runs_for_each() -> None:
    modes = summary_of(
        "icpc",
        [answer("a", True, None), answer("a", False, None), answer("a", True, None)],
        [answer("b", False, None), {**LOST, "name": "b"}, {**LOST, "name": "b"}],
    )
    assert (modes["pass@3"]["solved"], modes["pass@3"]["average_number_of_runs"]) == (1, 2.0)
    lost = summary_of("icpc", [LOST])["pass@1"]
    assert (lost["solved"], lost["average_number_of_runs"], lost["per_problem"]) == (0, 0.0, {})


def test_average_and_best_points_and_what_compiles() -> None:
    row = summary_of(
        "ccc",
        [
            answer("a", False, {"1": 5, "2": 1}, score=6, compiled=True),
            answer("a", False, {"1": 2, "2": 3}, score=5, compiled=True),
            answer("a", False, None, compiled=False),
            {**LOST, "name": "a"},
        ],
        [answer("b", True, {"1": 9}, score=9, compiled="yes"), *[answer("b", False, {}, score=0)] * 3],
    )["pass@4"]
    assert row["average_score"] == pytest.approx(11 / 3 + 9 / 4)
    assert row["best_score"] == 5 + 3 + 9
    assert row["compile_success_rate"] == pytest.approx(100 * 2 / 7)
    assert row["per_problem_subtask_scores"] == {"a": {"1": 5.0, "2": 3.0}, "b": {"1": 9.0}}
    lost = summary_of("ccc", [LOST])["pass@1"]
    assert (lost["average_score"], lost["best_score"], lost["compile_success_rate"]) == (0.0, 0.0, 0.0)
