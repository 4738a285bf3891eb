# SPDX-License-Identifier: Apache-2.0
"""Numbers over programs and queries."""

from __future__ import annotations

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
