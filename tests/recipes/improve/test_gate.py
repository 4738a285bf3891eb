# SPDX-License-Identifier: Apache-2.0
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError
from newskills.base.paired import spent_level
from newskills.recipes.improve.gate import check_gate, check_guard, gate_test, guard_check, why_closed


def scores(right: int, wrong: int, start: int = 0) -> dict[str, float]:
    return {str(start + n): float(n < right) for n in range(right + wrong)}


@given(st.floats(0.001, 0.5), st.integers(1, 200))
def test_the_levels_of_all_tests_add_up_to_alpha(alpha: float, tests: int) -> None:
    levels = [spent_level(test, alpha) for test in range(1, tests + 1)]
    assert levels == sorted(levels, reverse=True)
    assert sum(levels) < alpha
    assert sum(levels) > alpha * (1 - 1 / tests)


def test_a_round_is_better_where_p_is_below_its_own_level() -> None:
    """6 of 6 discordant pairs gained: p = 2 / 2^6."""
    before, after = scores(10, 30), scores(16, 24)
    test = gate_test(before, after, 0.04)
    assert (test.gained, test.lost, test.problems) == (6, 0, 40)
    assert test.p_value == 2 / 2**6
    assert test.better
    assert not gate_test(before, after, 0.03).better
    assert not gate_test(after, before, 0.04).better
    assert math.isclose(test.difference, 15.0)


def test_what_is_unscored_in_one_model_is_left_out() -> None:
    test = gate_test({"a": 0.0, "b": 0.0, "c": 1.0}, {"a": 1.0, "b": 1.0, "d": 0.0}, 0.05)
    assert (test.problems, test.gained) == (2, 2)
    with pytest.raises(ConfigError, match="Only 1 problem can be compared"):
        gate_test({"a": 0.0}, {"a": 1.0, "b": 0.0}, 0.05)


def test_a_guard_passes_where_the_interval_excludes_a_loss_of_the_margin() -> None:
    same, worse = scores(100, 100), scores(90, 110)
    assert guard_check("g", same, same, 2.0).passed
    check = guard_check("g", same, worse, 2.0)
    assert not check.passed
    assert math.isclose(check.difference, -5.0)
    assert guard_check("g", same, worse, 12.0).passed
    check_guard("g", same, 2.0)
    with pytest.raises(
        ConfigError, match="The guard g would fail even a model without any change: with 10 problems"
    ):
        check_guard("g", scores(5, 5), 2.0)


def test_the_gate_is_closed_where_too_few_problems_are_wrong() -> None:
    assert why_closed(scores(30, 10), 0.0076) == ""
    why = why_closed(scores(392, 8), 0.0076)
    assert why == (
        "no gain could be told from chance any more: 8 of 400 held-out problems are wrong, and p < 0.0076 needs 9 "
        "that turn correct"
    )


def test_a_gate_that_never_opens_is_said_before_the_first_round() -> None:
    check_gate(scores(5, 7), 0.03)
    with pytest.raises(
        ConfigError, match=r"The gate cannot open: .* 4 of 10 held-out problems are wrong"
    ) as caught:
        check_gate(scores(6, 4), 0.03)
    assert "++held_out" in caught.value.hint
