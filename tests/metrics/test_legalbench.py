# SPDX-License-Identifier: Apache-2.0
"""LegalBench's mean of tasks, worked out by hand."""

from __future__ import annotations

import pytest

from newskills.metrics import make_metric


def test_labels_weigh_alike_names_have_f1_and_tasks_weigh_alike() -> None:
    metric = make_metric("legalbench")
    for task, label, correct in (("a", "yes", True), ("a", "yes", True), ("a", "yes", False), ("a", "no", False)):
        metric.update([{"subset_for_metrics": task, "label": label, "symbolic_correct": correct}])
    for correct, counts in ((True, [2, 1, 0]), (False, [0, 1, 1])):
        row = {"subset_for_metrics": "ssla", "label": "", "symbolic_correct": correct, "name_counts": counts}
        metric.update([row])
    metric.update([{"subset_for_metrics": "sara", "label": "", "symbolic_correct": True}])
    modes = metric.metrics()
    figure = modes["pass@1"]["task_mean"]
    tasks = (100 * (2 / 3) / 2, 100 * 4 / 7, 100)
    assert float(getattr(figure, "value", figure)) == pytest.approx(sum(tasks) / 3)


def test_truncated_names_are_all_missing() -> None:
    metric = make_metric("legalbench")
    wrong = metric.incorrect({"expected_answer": "Ann, Bo", "name_counts": [2, 0, 0], "symbolic_correct": True})
    assert wrong["name_counts"] == [0, 2, 2]
    assert wrong["symbolic_correct"] is False
