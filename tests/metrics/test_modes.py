# SPDX-License-Identifier: Apache-2.0
"""Which modes a metric has, and that a figure in percent has its interval in percent."""

from __future__ import annotations

import pytest

from newskills.base.stats import mean_interval, wilson_interval
from newskills.metrics import make_metric
from newskills.metrics.counting.base import clustered_number, percent_number


def test_modes_of_samples_with_rewards() -> None:
    metric = make_metric("math")
    metric.update(
        [{"symbolic_correct": True, "predicted_answer": "1", "reward_model_score": score} for score in (0.1, 0.2)]
    )
    averages = ["pass@1", "pass@2", "pass@1[avg-of-2]", "majority@2"]
    assert list(metric.metrics()) == [*averages, "rm_best@1", "rm_best@2", "rm_majority@1", "rm_majority@2"]


@pytest.mark.parametrize("values", [{0: 7, 1: 3}, {0.25: 4, 0.75: 5}, {2.0: 3, 3.0: 4}])
def test_a_figure_in_percent_has_its_interval_in_percent(values: dict[float, int]) -> None:
    number, interval = percent_number(values, 2), mean_interval(values)
    assert (number.low, number.high) == pytest.approx((100 * interval.low, 100 * interval.high))
    assert (number.n, number.unscored, number.method) == (sum(values.values()), 2, interval.method)


def test_the_interval_of_seven_wrong_and_three_right() -> None:
    low, high = wilson_interval(0.3, 10)
    number = percent_number({0: 7, 1: 3}, 0)
    assert (number.value, number.low, number.high) == pytest.approx((30.0, 100 * low, 100 * high))


def test_an_interval_over_problems_for_a_figure_of_their_parts() -> None:
    parts, problems = percent_number({0: 20, 1: 60}, 0), percent_number({0.5: 10}, 3)
    number = clustered_number(parts, problems)
    low, high = wilson_interval(0.75, 10)
    assert (number.value, number.low, number.high) == pytest.approx((75.0, 100 * low, 100 * high))
    assert (number.n, number.unscored, number.method) == (10, 3, "cluster")
