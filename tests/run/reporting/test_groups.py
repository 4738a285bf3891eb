# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from newskills.base.benchmark import Group
from newskills.base.errors import ConfigError
from newskills.base.records import Ledger, Number, Report, Row
from newskills.benchmarks.scores import headline
from newskills.run.reporting.groups import group_reports
from newskills.run.reporting.tables import render_tables


def report(name: str, value: float, half: float = 2.0, n: int = 10) -> Report:
    number = Number(value=value, low=value - half, high=value + half, n=n)
    return Report(
        benchmark=name,
        modes={"pass@1": {"num_entries": n, "accuracy": value}},
        numbers={"pass@1": {"accuracy": number}},
        ledger=Ledger(correct=n),
        columns=("num_entries", "accuracy"),
    )


def twice_the_first(metrics: Mapping[str, Mapping[str, Row]]) -> dict[str, Any]:
    first, second = headline(metrics["a"], "accuracy"), headline(metrics["g.b"], "accuracy")
    return {"overall": (2 * first + second) / 3, "count": 2}


GROUP = Group(name="g", category="x", title="x", members={"a": {}, "g.b": {}}, score=twice_the_first)


def lookup(*groups: Group) -> Any:
    return {group.name: group for group in groups}.get


def test_the_groups_own_score_has_an_interval() -> None:
    (made,), notes = group_reports(
        [report("g.a", 60.0), report("g.b", 30.0, n=20), report("c", 1.0)], lookup(GROUP)
    )
    assert notes == []
    assert made.benchmark == "g"
    assert made.modes == {"score": {"num_benchmarks_in_group": 2, "overall": 50.0, "count": 2}}
    number = made.numbers["score"]["overall"]
    half = math.sqrt((2 * 2 / 3) ** 2 + (2 / 3) ** 2)
    assert (number.value, number.n, number.method) == (50.0, 30, "members")
    assert (number.high - 50.0, 50.0 - number.low) == (pytest.approx(half), pytest.approx(half))
    assert made.ledger.total == 30
    assert "50.00%" in render_tables([made])


def test_a_group_that_lacks_members_has_no_score() -> None:
    made, notes = group_reports([report("g.a", 60.0), report("g.other", 1.0)], lookup(GROUP))
    assert made == []
    assert notes == ["g has no score yet: there are no results for g.b."]


def test_a_score_that_is_not_known_here_is_not_replaced_by_a_mean() -> None:
    made, notes = group_reports([report("g.a", 60.0), report("g.b", 1.0)], lookup(), {"g"})
    assert made == []
    assert "has its own score" in notes[0]


def test_the_plain_mean_without_a_score() -> None:
    reports = [report("g.a", 60.0), report("g.b", 30.0), report("h.a", 5.0)]
    plain = Group(name="g", category="x", title="x", members={"a": {}, "g.b": {}})
    for groups in ((), (plain,)):
        (made,), _ = group_reports(reports, lookup(*groups))
        assert (made.benchmark, made.modes["pass@1"]["accuracy"]) == ("g", 45.0)


def test_modes_of_the_score_are_kept() -> None:
    nested = Group(name="g", category="x", title="x", members={"a": {}}, score=lambda m: {"pass@1": {"s": 1.0}})
    (made,), _ = group_reports([report("g.a", 60.0)], lookup(nested))
    assert made.modes == {"pass@1": {"num_benchmarks_in_group": 1, "s": 1.0}}


def test_a_score_that_fails_is_named() -> None:
    broken = Group(
        name="g", category="x", title="x", members={"a": {}}, score=lambda m: {"s": m["a"]["none"]["s"]}
    )
    with pytest.raises(ConfigError, match="score of the group g cannot be computed: there is no 'none'"):
        group_reports([report("g.a", 60.0)], lookup(broken))
