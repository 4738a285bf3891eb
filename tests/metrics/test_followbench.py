# SPDX-License-Identifier: Apache-2.0
"""Satisfaction rates by hand: two kinds of constraint of different size, one unscored level."""

from __future__ import annotations

import pytest

from newskills.base.records import Row
from newskills.metrics import make_metric


def sample(kind: str, example: int, level: int, soft: float | None) -> Row:
    hard = None if soft is None else soft == 1
    outcome = "unscored" if hard is None else "correct" if hard else "wrong"
    fields: Row = {"hard_satisfied": hard, "soft_satisfied": soft, "outcome": outcome, "outcome_cause": "judge"}
    return {"constraint_type": kind, "example": example, "level": level, **fields}


def test_rates_are_means_over_levels_of_means_over_kinds() -> None:
    metric = make_metric("followbench")
    kept: dict[tuple[str, int], tuple[float | None, ...]] = {
        ("content", 1): (1, 1, 0.5, 1, 0),
        ("content", 2): (1, 0, 0, 0, 0),
        ("style", 1): (1, 1, 1, None, 1),
    }
    for (kind, example), levels in kept.items():
        for level, soft in enumerate(levels, 1):
            metric.update([sample(kind, example, level, soft)])
    numbers = metric.numbers()["pass@1"]
    # Levels: content 2/2, 1/2, 0/2, 1/2, 0/2; style 1, 1, 1, unscored, 1.
    hard_means = [(1 + 1) / 2, (0.5 + 1) / 2, (0 + 1) / 2, 0.5, (0 + 1) / 2]
    soft_means = [1, 0.75, (0.25 + 1) / 2, 0.5, 0.5]
    assert numbers["hsr"].value == pytest.approx(100 * sum(hard_means) / 5)
    assert numbers["ssr"].value == pytest.approx(100 * sum(soft_means) / 5)
    assert numbers["csl"].value == pytest.approx((2 + 1) / 2), "the style's run is open at the unscored level"
    assert numbers["satisfied"].value == pytest.approx(100 * 8 / 14)
    assert numbers["hsr"].unscored == 1


def test_several_samples_are_averaged_or_the_best_counts() -> None:
    metric = make_metric("followbench")
    for level in range(1, 6):
        metric.update([sample("content", 1, level, 1 if level < 3 else 0.5), sample("content", 1, level, 1)])
    numbers = metric.numbers()
    assert numbers["pass@1[avg-of-2]"]["csl"].value == pytest.approx((2 + 5) / 2)
    assert numbers["pass@2"]["hsr"].value == pytest.approx(100)
    assert numbers["pass@1"]["hsr"].value == pytest.approx(40)
