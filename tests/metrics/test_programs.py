# SPDX-License-Identifier: Apache-2.0
"""Numbers over programs and queries."""

from __future__ import annotations

import math

import pytest

from newskills.base.stats import Z95
from newskills.metrics import make_metric


def test_the_first_verdict_there_is_counts() -> None:
    for right, wrong in (
        ({"graded_list": [True]}, {"graded_list": [False]}),
        ({"status": "pass"}, {"status": "fail"}),
        ({"passed": True}, {"passed": False}),
        ({"is_correct": True}, {"is_correct": False}),
    ):
        metric = make_metric("livecodebench")
        for record in (right, right, right, wrong):
            metric.update([record])
        assert metric.metrics()["pass@1"]["accuracy"] == 75
        made = metric.incorrect({**right, "id": 1})
        again = make_metric("bigcodebench")
        again.update([made])
        assert again.metrics()["pass@1"]["accuracy"] == 0
        assert again.ledger().no_answer == 1


def test_too_long_programs_are_wrong_in_the_words_of_their_grader() -> None:
    cut = {"outcome": "no_answer", "outcome_cause": "truncation"}
    metric = make_metric("code_tests")
    assert metric.incorrect({"id": 1}) == {"id": 1, "is_correct": False, **cut}
    assert metric.incorrect({"status": "pass"}) == {"status": "fail", **cut}
    report = {"resolved": False, "patch_exists": False, "patch_successfully_applied": False}
    assert make_metric("swe-bench").incorrect({"id": 1}) == {"id": 1, "swe-bench-metrics": report, **cut}
    assert make_metric("bird").incorrect({"res": 1}) == {"res": 0, **cut}


def test_unscored_programs_count_for_nothing() -> None:
    metric = make_metric("code_tests")
    metric.update([{"is_correct": True, "outcome": "correct"}])
    metric.update([{"is_correct": None, "outcome": "unscored", "outcome_cause": "harness"}])
    found = metric.metrics()["pass@1"]
    assert (found["accuracy"], found["unscored"]) == (100, 50)


def test_bird_by_difficulty() -> None:
    metric = make_metric("bird")
    for res, difficulty in ((1, "simple"), (0, "simple"), (1, "moderate"), (0, "challenging"), (0, None)):
        metric.update([{"res": res, "difficulty": difficulty}])
    found = metric.metrics()["pass@1"]
    assert (found["total_acc"], found["simple_acc"], found["moderate_acc"]) == (40, 50, 100)
    assert found["challenging_acc"] == 0


def test_samples_that_try_to_forge_are_counted() -> None:
    for name in ("code_tests", "evalplus", "classeval", "scicode"):
        metric, clean = make_metric(name), make_metric(name)
        for suspicious in ("patches unittest", "", None):
            metric.update([{"is_correct": False, "outcome": "wrong", "suspicious": suspicious}])
            clean.update([{"is_correct": False, "outcome": "wrong"}])
        assert metric.metrics()["pass@1"]["suspicious"] == 1
        assert "suspicious" not in clean.metrics()["pass@1"]


def test_the_steps_of_all_problems_count_alike() -> None:
    """Two of four steps and one of one: 3 of 5; the residuals are ±0.4 around it."""
    metric = make_metric("scicode")
    for passed in ([True, True, False, False], [True]):
        status = [{"passed": value} for value in passed]
        metric.update([{"eval_status": status, "is_correct": all(passed), "outcome": "wrong"}])
    number = metric.numbers()["pass@1"]["subtask_accuracy"]
    half = 100 * Z95 * math.sqrt(0.4**2 + 0.4**2) / 5
    assert number.value == pytest.approx(60)
    assert (number.low, number.high) == pytest.approx((60 - half, 60 + half))
    assert (number.n, number.method) == (2, "linearised")
    assert metric.metrics()["pass@1"]["num_subtasks"] == 5


def test_proofs_that_were_late() -> None:
    metric = make_metric("lean4-proof")
    for statuses in (("timeout", "completed"), ("timeout", "timeout"), ("error", "completed")):
        metric.update([{"proof_status": status, "outcome": "wrong"} for status in statuses])
    found = metric.metrics()
    assert found["pass@1[avg-of-2]"]["timeout_error"] == pytest.approx(50)
    assert found["pass@2"]["timeout_error"] == pytest.approx(100 / 3), "late both times"
    assert found["pass@2"]["lean4_correct"] == pytest.approx(200 / 3)
    assert make_metric("lean4-proof").metrics() == {}
