# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.base.records import Row
from newskills.metrics import make_metric


def _record(right: bool | None, spoken: bool | None, **more: object) -> Row:
    return {"predicted_answer": "1", "symbolic_correct": right, "language_correct": spoken, **more}


def test_right_in_the_right_language() -> None:
    metric = make_metric("math_multilingual")
    for right, spoken in ((True, True), (True, False), (False, True), (None, True)):
        metric.update([_record(right, spoken)])
    numbers = metric.numbers()["pass@1"]
    assert numbers["symbolic_correct"].value == pytest.approx(200 / 3)
    both = numbers["symbolic_and_language_correct"]
    assert (both.value, both.n, both.unscored) == (pytest.approx(100 / 3), 3, 1)


def test_judges_too() -> None:
    metric = make_metric("multichoice_multilingual")
    metric.update([_record(False, True, judgement="Judgement: Yes")])
    metric.update([_record(True, False, judgement="Judgement: Yes")])
    values = {name: number.value for name, number in metric.numbers()["pass@1"].items()}
    assert values["judge_and_language_correct"] == 50
    assert values["any_language_correct"] == 50
    assert values["both_language_correct"] == 0


def test_without_a_language_nothing_is_added() -> None:
    metric = make_metric("math_multilingual")
    metric.update([_record(True, None)])
    assert "symbolic_and_language_correct" not in metric.numbers()["pass@1"]


def test_levels_weigh() -> None:
    metric = make_metric("weighted-math")
    for weight, right in ((1, True), (1, True), (2, True), (4, False), (8, False)):
        metric.update([{"predicted_answer": "1", "symbolic_correct": right, "weight": weight}] * 2)
    for mode in ("pass@1", "pass@2", "pass@1[avg-of-2]"):
        found = metric.numbers()[mode]["weighted_symbolic_correct"]
        assert found.value == pytest.approx(100 * 4 / 16)
        assert found.low < found.value < found.high
    assert metric.numbers()["pass@1"]["symbolic_correct"].value == 60
