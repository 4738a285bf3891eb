# SPDX-License-Identifier: Apache-2.0
"""Test classes of invented tasks, run by ours in a real sandbox and by the authors' pipeline."""

from __future__ import annotations

import pytest

from newskills.benchmarks.code.classeval import row
from newskills.metrics import make_metric
from tests.graders.code.running_any import fenced, graded
from tests.official import classeval
from tests.official.recording import read


@pytest.mark.slow
def test_verdicts_of_test_classes() -> None:
    cases = list(read("classeval"))
    rows = []
    for case in cases:
        raw = {"skeleton": "", "class_description": "", **classeval.task(case["task"])}
        rows.append({**row(raw, 0), "generation": fenced(case["code"])})
    scores = graded("classeval", rows)
    ours = [score.fields["test_classes_passed"] for score in scores]
    different = [
        (case["code"], case["official"], passed)
        for case, passed in zip(cases, ours, strict=True)
        if passed != case["official"]
    ]
    assert len(cases) >= 300
    assert not different, (len(different), different[:3])


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
