# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.metrics import make_metric


def test_class_and_method_level() -> None:
    metric = make_metric("classeval")
    names = ["ATestOne", "ATestTwo", "ATest"]
    for passed in ((True, True, True), (True, False, False), ()):
        fields = {"is_correct": all(passed) if passed else False, "test_classes": names}
        if passed:
            fields["test_classes_passed"] = dict(zip(names, passed, strict=True))
        metric.update([{**fields, "outcome": "correct" if fields["is_correct"] else "wrong"}])
    numbers = metric.numbers()["pass@1"]
    assert numbers["class_success"].value == pytest.approx(100 / 3)
    assert numbers["method_success"].value == pytest.approx(100 * 4 / 9)


def test_lost_and_unscored_samples_count_for_no_test_class() -> None:
    metric = make_metric("classeval")
    own = {"test_classes": ["A"], "test_classes_passed": {"A": True}}
    metric.update(
        [
            {**own, "is_correct": True, "outcome": "correct"},
            {**own, "is_correct": None},
            {**own, "is_correct": True, "outcome": "unscored", "outcome_cause": "sandbox"},
            {"test_classes": ["A", "B"], "test_classes_passed": None, "is_correct": False, "outcome": "no_answer"},
        ]
    )
    numbers = metric.numbers()["pass@1[avg-of-4]"]
    assert (numbers["method_success"].value, numbers["class_success"].value) == (25.0, 50.0)
    assert numbers["class_success"].unscored == 2
