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
