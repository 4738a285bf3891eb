# SPDX-License-Identifier: Apache-2.0
"""Headlines of parts that weigh differently: value and interval, from the numbers of the parts alone."""

from __future__ import annotations

import math

import pytest

from newskills.base.records import Number, Row
from newskills.base.stats import Z95, wilson_interval
from newskills.metrics import make_metric


def interval(right: int, of: int) -> tuple[float, float]:
    """In percent, of so many right ones."""
    low, high = wilson_interval(right / of, of)
    return 100 * low, 100 * high


def standard_error(right: int, of: int) -> float:
    low, high = interval(right, of)
    return (high - low) / (2 * Z95)


def test_levels_weigh_their_weight_times_their_problems() -> None:
    metric = make_metric("weighted-math")
    levels = {1.0: (2, 3), 2.0: (1, 2), 4.0: (1, 4)}
    for weight, (right, of) in levels.items():
        for at in range(of):
            metric.update([{"predicted_answer": "1", "symbolic_correct": at < right, "weight": weight}])
    metric.update([{"predicted_answer": "1", "symbolic_correct": True}])
    levels[1.0] = (3, 4)
    total = sum(weight * of for weight, (_, of) in levels.items())
    value = 100 * sum(weight * right for weight, (right, _) in levels.items()) / total
    half = (
        Z95
        / total
        * math.hypot(*(weight * of * standard_error(right, of) for weight, (right, of) in levels.items()))
    )
    number = metric.numbers()["pass@1"]["weighted_symbolic_correct"]
    assert number.value == pytest.approx(value)
    assert (number.low, number.high) == pytest.approx((value - half, value + half))
    assert (number.n, number.unscored) == (10, 0)
    row = metric.metrics()["pass@1"]
    assert row["weighted_symbolic_correct"] == pytest.approx(value)
    assert not any(name.startswith("weighted_no_answer") for name in row)


def worth(category: str, task: str, right: bool | None) -> Row:
    outcome = "unscored" if right is None else "correct" if right else "wrong"
    return {"category": category, "task": task, "symbolic_correct": right, "outcome": outcome}


def leaderboard(tasks: dict[tuple[str, str], tuple[int, int]], unscored: int = 0) -> Number:
    metric = make_metric("livebench")
    for (category, task), (right, of) in tasks.items():
        for at in range(of):
            metric.update([worth(category, task, at < right)])
    for _ in range(unscored):
        metric.update([worth("math", "olympiad", None)])
    return metric.numbers()["pass@1"]["accuracy"]


def test_tasks_weigh_alike_within_categories_that_weigh_alike() -> None:
    tasks = {("math", "olympiad"): (3, 4), ("math", "AMPS_Hard"): (1, 5), ("reasoning", "spatial"): (4, 7)}
    number = leaderboard(tasks, unscored=2)
    weights = (0.25, 0.25, 0.5)
    value = 100 * sum(weight * right / of for weight, (right, of) in zip(weights, tasks.values(), strict=True))
    errors = [weight * standard_error(*counts) for weight, counts in zip(weights, tasks.values(), strict=True)]
    half = Z95 * math.hypot(*errors)
    assert number.value == pytest.approx(value)
    assert (number.low, number.high) == pytest.approx((value - half, value + half))
    assert (number.n, number.unscored, number.method) == (16, 2, "stratified")


@pytest.mark.parametrize("right", [0, 2])
def test_an_interval_in_percent_stays_within_0_and_100(right: int) -> None:
    number = leaderboard({("math", "olympiad"): (right, 2)})
    half = Z95 * standard_error(right, 2)
    assert number.value == 50 * right
    assert (number.low, number.high) == pytest.approx((max(0, 50 * right - half), min(100, 50 * right + half)))
