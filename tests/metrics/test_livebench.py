# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.base.records import Row
from newskills.metrics import make_metric


def _record(category: str, task: str, worth: float, **more: object) -> Row:
    outcome = "correct" if worth == 1 else "wrong"
    return {"category": category, "task": task, "symbolic_correct": worth, "outcome": outcome, **more}


def test_the_headline_is_the_mean_of_categories_of_the_mean_of_tasks() -> None:
    metric = make_metric("livebench")
    for worth in (1.0, 1.0, 0.5, 0.5):
        metric.update([_record("math", "olympiad", worth)])
    metric.update([_record("math", "AMPS_Hard", 0.0)])
    metric.update([_record("reasoning", "spatial", 1.0)])
    row = metric.metrics()["pass@1"]
    assert row["accuracy"] == pytest.approx(((75 + 0) / 2 + 100) / 2)
    assert row["by_question"] == pytest.approx(400 / 6)
    assert metric.numbers()["pass@1"]["accuracy"].method == "stratified"
    low, high = row["accuracy_interval"]
    assert 0 <= low < row["accuracy"] < high <= 100


def test_a_task_without_any_scored_sample_weighs_nothing() -> None:
    metric = make_metric("livebench")
    metric.update([_record("math", "olympiad", 1.0)])
    lost = {"symbolic_correct": None, "outcome": "unscored", "outcome_cause": "provider"}
    metric.update([_record("math", "AMPS_Hard", 0.0) | lost])
    number = metric.numbers()["pass@1"]["accuracy"]
    assert (number.value, number.n) == (pytest.approx(100), 1)


def test_one_sample_and_the_mean_of_several() -> None:
    metric = make_metric("livebench")
    metric.update([_record("math", "olympiad", 1.0), _record("math", "olympiad", 0.0)])
    metric.update([_record("reasoning", "spatial", 0.0), _record("reasoning", "spatial", 0.0)])
    modes = metric.metrics()
    assert modes["pass@2"]["accuracy"] == pytest.approx(50)
    assert modes["pass@1[avg-of-2]"]["accuracy"] == pytest.approx(25)
