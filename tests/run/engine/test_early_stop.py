# SPDX-License-Identifier: Apache-2.0
"""The rules of `--until`: how often they err, by simulation of what the engine itself asks."""

from __future__ import annotations

import random

import pytest

from newskills.base.errors import ConfigError
from newskills.run.engine.early_stop import EarlyStop
from newskills.run.planning.until import StopPlan, parse_until, random_order

RUNS, ROWS = 200, 400


def watcher(rule: str, baseline: dict[str, float] | None = None, *, rows: int = ROWS, files: int = 1) -> EarlyStop:
    plan = StopPlan(rule=parse_until(rule), metric="generic", baseline=baseline or {})
    return EarlyStop(plan, files=files, rows=rows)


def feed(stop: EarlyStop, outcomes: list[bool]) -> EarlyStop:
    """`outcomes` by the order in which problems are asked."""
    for position, right in zip(stop.order, outcomes, strict=True):
        stop.book(position, {"id": str(position), "is_correct": right})
        if stop.met:
            break
    return stop


def test_where_there_is_no_difference_one_is_decided_in_less_than_five_percent_of_the_runs() -> None:
    draw = random.Random(3)
    wrongly = 0
    for _ in range(RUNS):
        base = {str(position): float(draw.random() < 0.6) for position in range(ROWS)}
        wrongly += feed(watcher("decided vs base", base), [draw.random() < 0.6 for _ in range(ROWS)]).met
    assert wrongly / RUNS < 0.05


def test_a_difference_is_decided_early_and_in_the_right_direction() -> None:
    draw = random.Random(4)
    rows = []
    for _ in range(60):
        base = {str(position): float(draw.random() < 0.5) for position in range(ROWS)}
        stop = feed(watcher("decided vs base", base), [draw.random() < 0.8 for _ in range(ROWS)])
        assert stop.record().decision in ("better", "")
        rows.append(stop.counted)
    assert sum(rows) / len(rows) < 0.6 * ROWS


@pytest.mark.nightly
@pytest.mark.parametrize("truth", [0.5, 0.9])
def test_the_interval_where_a_run_stops_holds_the_truth_in_95_percent_of_the_runs(truth: float) -> None:
    draw = random.Random(5)
    held = 0
    for _ in range(RUNS):
        stop = feed(watcher("ci<9"), [draw.random() < truth for _ in range(ROWS)])
        record = stop.record()
        assert record.low is not None
        assert record.high is not None
        assert stop.met
        assert (record.high - record.low) / 2 < 9
        held += record.low <= 100 * truth <= record.high
    assert held / RUNS >= 0.95


def test_what_comes_back_first_does_not_count_first() -> None:
    """Right answers are short: they come in long before the wrong ones that were asked before them."""
    draw = random.Random(6)
    outcomes = [draw.random() < 0.5 for _ in range(ROWS)]
    stop, plain = watcher("rows=200"), feed(watcher("rows=200"), outcomes)
    arriving = sorted(zip(stop.order, outcomes, strict=True), key=lambda pair: not pair[1])
    for position, right in arriving:
        stop.book(position, {"id": str(position), "is_correct": right})
    assert stop.record() == plain.record()
    assert stop.positions() == sorted(random_order(ROWS)[:200])


def test_all_seeds_of_a_problem_count_as_one_value() -> None:
    stop = watcher("rows=2", files=2, rows=4)
    first, second = stop.order[:2]
    for position, outcomes in ((first, (True, False)), (second, (True, None))):
        for right in outcomes:
            stop.book(position, {"id": str(position), "is_correct": right})
    assert stop.met
    assert stop.record().value == 75.0


def test_many_failed_requests_meet_no_rule() -> None:
    stop = watcher("ci<20")
    for number, position in enumerate(stop.order):
        if number % 20 == 0:
            stop.book_failure(position)
        else:
            stop.book(position, {"id": str(position), "is_correct": True})
    assert not stop.met
    assert stop.record().no_reply == 20
    assert len(stop.positions()) == ROWS - 20


@pytest.mark.parametrize(("rule", "truth"), [("ci<9", 0.5), ("ci<9", 0.97), ("decided vs base", 0.9)])
def test_what_may_be_asked_starts_small_and_stays_near_what_counts(rule: str, truth: float) -> None:
    draw = random.Random(7)
    stop = watcher(rule, {str(position): float(draw.random() < 0.6) for position in range(ROWS)})
    assert stop.limit == 20
    asked = 0
    while not stop.met:
        assert not stop.waits(asked), "a problem waits though none is under way"
        while not stop.waits(asked) and not stop.ends(asked):
            asked += 1
        assert asked <= max(20, 2 * stop.counted)
        for position in stop.order[stop.counted : asked]:
            stop.book(position, {"id": str(position), "is_correct": draw.random() < truth})
    assert asked < ROWS
    assert asked <= max(20, 1.2 * stop.counted)


@pytest.mark.parametrize("lost", [0, 1])
def test_no_more_than_so_many_rows_are_ever_allowed(lost: int) -> None:
    stop = watcher("rows=7")
    assert [stop.ends(rank) for rank in (0, 6, 7, ROWS - 1, ROWS)] == [False, False, True, True, False]
    for number, position in enumerate(stop.order[:7]):
        if number < lost:
            stop.book_failure(position)
        else:
            stop.book(position, {"id": str(position), "is_correct": True})
    assert stop.met == (lost == 0)
    assert stop.limit == 7


def test_a_row_without_a_verdict_is_one_of_those_that_were_promised() -> None:
    stop = watcher("rows=3")
    for position in stop.order[:3]:
        stop.book(position, {"id": str(position), "outcome": "unscored"})
    assert stop.met
    assert stop.record().unscored == 3


@pytest.mark.parametrize(
    ("rule", "rows", "said"),
    [
        ("ci<2", 1319, "at a score of 50 % all 1,319 problems give ±4.7 points"),
        ("ci<5", 1319, ""),
        ("ci<20", 5, "cannot be met"),
        ("rows=21", 20, "there are only 20 problems"),
        ("rows=20", 20, ""),
        ("decided vs base", 5, "too few"),
        ("decided vs base", 50, ""),
    ],
)
def test_a_rule_that_the_benchmark_cannot_meet_is_told_beforehand(rule: str, rows: int, said: str) -> None:
    doubt = parse_until(rule).doubt(rows, 1)
    assert said in doubt
    assert bool(said) == bool(doubt)


@pytest.mark.parametrize("right", [0.5, 0.7, 0.9])
def test_a_rule_without_doubt_is_met_by_all_rows_whatever_their_score(right: float) -> None:
    rule = parse_until("ci<9")
    assert not rule.doubt(ROWS, 1)
    assert rule.met({1.0: round(right * ROWS), 0.0: ROWS - round(right * ROWS)})


def test_problems_that_the_other_run_lacks_are_counted_apart() -> None:
    base = {str(position): 0.0 for position in range(0, ROWS, 2)}
    record = feed(watcher("decided vs base", base), [False] * ROWS).record()
    assert record.unpaired == ROWS // 2
    assert not record.met
    assert record.value == 0


@pytest.mark.parametrize("text", ["", "ci", "ci<", "ci<0", "ci>1", "decided", "decided vs ", "rows=0", "n<3"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a rule"):
        parse_until(text)


def test_rules_may_hold_blanks() -> None:
    assert parse_until(" ci < 1.5 ").points == 1.5
    assert parse_until("decided vs results/my base").against == "results/my base"


def test_a_metric_without_scores_of_problems_is_refused() -> None:
    with pytest.raises(ConfigError, match="a score for each problem"):
        EarlyStop(StopPlan(rule=parse_until("ci<1"), metric="translation"), files=1, rows=3)
