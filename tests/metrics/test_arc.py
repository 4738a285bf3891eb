# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.metrics import make_metric


def test_grids_count_and_any_attempt_may_have_them() -> None:
    metric = make_metric("arc")
    for task in ([[True, False], [False, True]], [[False], [False]], [[True, False, False], [True, False, False]]):
        samples = [
            {"right_grids": right, "symbolic_correct": all(right), "predicted_answer": "x"} for right in task
        ]
        metric.update(samples)
    modes = metric.metrics()
    assert modes["pass@1"]["arc_score"] == pytest.approx(100 * (1 / 2 + 0 + 1 / 3) / 3)
    assert modes["pass@2"]["arc_score"] == pytest.approx(100 * (1 + 0 + 1 / 3) / 3)
    assert modes["pass@2"]["accuracy"] == 0


def test_an_attempt_that_failed_leaves_the_others() -> None:
    metric = make_metric("arc")
    lost = {"outcome": "unscored", "outcome_cause": "provider"}
    metric.update([lost, {"right_grids": [True], "symbolic_correct": True, "predicted_answer": "x"}])
    assert metric.metrics()["pass@1"]["arc_score"] == 100
    metric.update([lost, lost])
    assert metric.numbers()["pass@1"]["arc_score"].unscored == 1
