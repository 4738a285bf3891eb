# SPDX-License-Identifier: Apache-2.0
"""What agents cost and how their work ends, against figures done by hand."""

from __future__ import annotations

import pytest

from newskills.base.records import Row
from newskills.metrics import make_metric

BROKEN: Row = {"outcome": "unscored", "outcome_cause": "environment"}
LATE: Row = {"outcome": "unscored", "outcome_cause": "timeout"}


def metrics_of(name: str, *problems: list[Row]) -> dict[str, Row]:
    metric = make_metric(name)
    for samples in problems:
        metric.update(samples)
    return metric.metrics()


def judged_by_tests(reward: float | None) -> Row:
    return {"task-tests": {"reward": reward}}


def test_effort_is_the_mean_over_samples_that_have_it() -> None:
    row = metrics_of(
        "terminal-bench",
        [
            {**judged_by_tests(1), "num_steps": 4, "agent_seconds": 2.5, "cost": 0.5},
            {**judged_by_tests(0), "num_steps": 0},
        ],
        [{**BROKEN, "num_steps": 5, "cost": 0.25}, LATE],
    )["pass@1[avg-of-2]"]
    assert (row["avg_steps"], row["avg_agent_seconds"], row["avg_cost"]) == (3.0, 2.5, 0.375)
    assert row["environment_failed"] == 25.0
    assert row["unscored"] == 50.0
    bare = metrics_of("terminal-bench", [judged_by_tests(1)])["pass@1"]
    assert bare["environment_failed"] == 0.0
    assert not {"avg_steps", "avg_agent_seconds", "avg_cost"} & set(bare)


@pytest.mark.parametrize(
    ("report", "resolved", "reward", "late", "none"),
    [
        ({"reward": 1}, 100, 100, 0, 0),
        ({"reward": 0.99}, 0, 99, 0, 0),
        ({"reward": 1.5}, 100, 100, 0, 0),
        ({"reward": 0}, 0, 0, 0, 0),
        ({"reward": -2}, 0, 0, 0, 0),
        ({"reward": None}, 0, 0, 0, 100),
        ({"reward": None, "timed_out": True}, 0, 0, 100, 0),
        ({"reward": 0.5, "timed_out": True}, 0, 50, 100, 0),
    ],
)
def test_what_the_tests_of_a_terminal_task_say(
    report: Row, resolved: float, reward: float, late: float, none: float
) -> None:
    row = metrics_of("terminal-bench", [{"task-tests": report}])["pass@1"]
    names = ("tasks_resolved", "reward", "tests_timed_out", "no_verdict")
    assert [row[name] for name in names] == pytest.approx([resolved, reward, late, none])


@pytest.mark.parametrize("name", ["terminal-bench", "swe-bench"])
@pytest.mark.parametrize("report", [None, {}])
def test_without_a_report_a_sample_is_unscored(name: str, report: Row | None) -> None:
    field = {"terminal-bench": "task-tests", "swe-bench": "swe-bench-metrics"}[name]
    metric = make_metric(name)
    metric.update([{field: report}])
    assert metric.numbers() == {"pass@1": {}}
    assert metric.ledger().causes == {"grader": 1}


PATCH = {"patch_exists": True, "patch_successfully_applied": True, "resolved": False}


@pytest.mark.parametrize(
    ("report", "figures"),
    [
        ({**PATCH, "resolved": True}, (100, 0, 0, 0)),
        (PATCH, (0, 0, 0, 0)),
        ({**PATCH, "tests_timed_out": True}, (0, 0, 0, 100)),
        ({**PATCH, "patch_successfully_applied": False}, (0, 0, 100, 0)),
        ({**PATCH, "patch_exists": False, "patch_successfully_applied": False}, (0, 100, 0, 0)),
    ],
)
def test_what_the_tests_of_a_repository_say(report: Row, figures: tuple[float, ...]) -> None:
    row = metrics_of("swe-bench", [{"swe-bench-metrics": report}])["pass@1"]
    names = ("issues_resolved", "no_patch", "patch_cant_apply", "tests_timed_out")
    assert tuple(row[name] for name in names) == figures


def test_harm_refusals_and_both() -> None:
    row = metrics_of(
        "agentharm",
        [{"harm_score": 1.0, "refused": False}],
        [{"harm_score": 0.5, "refused": False}],
        [{"harm_score": 0.2, "refused": True}],
        [{"harm_score": None, "refused": None}],
    )["pass@1"]
    assert row["harm_score"] == pytest.approx(100 * 1.7 / 3)
    assert row["refusal_rate"] == row["full_score"] == pytest.approx(100 / 3)
    assert row["non_refusal_harm_score"] == 75.0


def test_tasks_with_and_without_an_attack() -> None:
    metric = make_metric("agentdojo")
    for record in (
        {"injection_task": "", "utility": True},
        {"injection_task": "", "utility": False},
        {"injection_task": "", "utility": False},
        {"injection_task": "i", "utility": True, "attack_success": True},
        {"injection_task": "i", "utility": True, "attack_success": False},
        {"injection_task": "i", "utility": True, "attack_success": False},
        {"injection_task": "i", "utility": False, "attack_success": False},
        {"injection_task": "i", "utility": None, "attack_success": None},
    ):
        metric.update([record])
    row = metric.metrics()["pass@1"]
    assert row["utility"] == pytest.approx(100 / 3)
    assert (row["utility_under_attack"], row["attack_success"]) == (75.0, 25.0)
    ledger = metric.ledger()
    assert (ledger.correct, ledger.wrong, ledger.unscored) == (4, 3, 1)
