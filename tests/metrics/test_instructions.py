# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.base.records import Row
from newskills.metrics import make_metric


def record(strict: list[bool], loose: list[bool] | None = None, **more: object) -> Row:
    levels = {"strict_eval": strict, "loose_eval": strict if loose is None else loose}
    fields: Row = {
        name: {"follow_instruction_list": followed, "follow_all_instructions": all(followed)}
        for name, followed in levels.items()
    }
    return {**fields, "outcome": "correct" if all(strict) else "wrong", "num_generated_tokens": 10, **more}


UNSCORED: Row = {"strict_eval": None, "loose_eval": None, "outcome": "unscored", "outcome_cause": "data"}


def test_prompts_and_instructions_are_counted_apart() -> None:
    metric = make_metric("if")
    metric.update([record([True, True, False], [True, True, True])])
    metric.update([record([True])])
    metric.update([record([False, False], [True, False])])
    row = metric.metrics()["pass@1"]
    assert row["prompt_strict_accuracy"] == pytest.approx(100 / 3)
    assert row["instruction_strict_accuracy"] == pytest.approx(100 * 3 / 6)
    assert row["prompt_loose_accuracy"] == pytest.approx(200 / 3)
    assert row["instruction_loose_accuracy"] == pytest.approx(100 * 5 / 6)
    assert row["average_score"] == pytest.approx(100 * (1 / 3 + 1 / 2 + 2 / 3 + 5 / 6) / 4)
    assert (row["num_prompts"], row["num_instructions"], row["num_entries"]) == (3, 6, 3)


def test_intervals_are_those_of_prompts() -> None:
    metric = make_metric("if")
    for _ in range(20):
        metric.update([record([True, False, True, False])])
    numbers = metric.numbers()["pass@1"]
    number = numbers["instruction_strict_accuracy"]
    assert (number.value, number.n) == (50, 20)
    assert number.low < 30
    assert number.high > 70
    assert numbers["average_score"].low <= numbers["average_score"].value <= numbers["average_score"].high


def test_several_samples() -> None:
    metric = make_metric("if")
    metric.update([record([True, False]), record([False, True])])
    modes = metric.metrics()
    assert modes["pass@1[avg-of-2]"]["instruction_strict_accuracy"] == 50
    assert modes["pass@2"]["instruction_strict_accuracy"] == 100
    assert modes["pass@2"]["prompt_strict_accuracy"] == 0
    assert modes["pass@1[avg-of-2]"]["average_score"] == 25
    assert "prompt_strict_accuracy_statistics" in modes["pass@1[avg-of-2]"]


def test_unscored_prompts_leave_all_scores() -> None:
    metric = make_metric("if")
    metric.update([record([True, False])])
    metric.update([UNSCORED])
    row = metric.metrics()["pass@1"]
    assert row["instruction_strict_accuracy"] == 50
    assert row["unscored"] == 50
    assert metric.ledger().causes["data"] == 1


def test_too_long_answers_follow_nothing() -> None:
    metric = make_metric("if")
    metric.update([metric.incorrect(record([True, True]))])
    row = metric.metrics()["pass@1"]
    assert [row[name] for name in row if name.endswith("_accuracy")] == [0, 0, 0, 0]
    assert metric.ledger().no_answer == 1


def test_nothing_scored() -> None:
    metric = make_metric("if")
    metric.update([UNSCORED])
    assert "average_score" not in metric.metrics()["pass@1"]
