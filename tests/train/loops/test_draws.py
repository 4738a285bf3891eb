# SPDX-License-Identifier: Apache-2.0
"""Which problems a step gets: epochs, sources by weight, what is put aside and comes back, and all of it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.train.loops.draws import DrawConfig, ProblemDraws, differ
from newskills.train.loops.samples import Problem
from newskills.train.loops.schedule import batch_at

Solve = Callable[[int, int], list[float | None]]
"""(step, place of a problem) → the rewards of its group."""


def problems(**sources: int) -> list[Problem]:
    return [Problem([number], {}, source) for source, count in sources.items() for number in range(count)]


def trained(draws: ProblemDraws, steps: range, solve: Solve, resample: int = 0) -> list[Row]:
    """What a run of those steps writes of its samples; groups without spread are drawn for again `resample` times."""
    rows: list[Row] = []
    for step in steps:
        places = draws.batch(step)
        for number in range(resample + 1):
            flat = []
            for place in places:
                rewards = solve(step, place)
                draws.note(place, differ(rewards))
                flat += [] if differ(rewards) else [place]
                responses = [{"reward": reward} for reward in rewards]
                rows.append({"step": step + 1, "place": place, "round": number, "responses": responses})
            places = draws.further(flat) if number < resample else []
            if not places:
                break
    return rows


def drawn(rows: list[Row]) -> list[list[int]]:
    steps: dict[int, list[int]] = {}
    for row in rows:
        steps.setdefault(row["step"], []).append(row["place"])
    return list(steps.values())


@given(count=st.integers(1, 20), size=st.integers(1, 8), seed=st.integers(0, 3))
def test_one_source_is_drawn_in_the_order_of_every_other_training(count: int, size: int, seed: int) -> None:
    draws = ProblemDraws(problems(a=count), DrawConfig(size=size, seed=seed))
    for step in range(7):
        assert draws.batch(step) == batch_at(range(count), step, size, seed)


def test_problems_without_spread_rest_for_longer_each_time_and_come_back() -> None:
    """Of four problems nobody ever solves the first: it comes with its turn, and after 2, 4, 8 … steps of rest."""
    draws = ProblemDraws(problems(a=4), DrawConfig(size=1, put_aside=2))
    rows = trained(draws, range(60), lambda _, place: [0.0, 0.0] if place == 0 else [0.0, 1.0])
    steps = [row["step"] for row in rows if row["place"] == 0]
    rests = [after - before - 1 for before, after in pairwise(steps)]
    assert len(steps) >= 3
    assert all(rest >= 2 * 2**number for number, rest in enumerate(rests))
    assert {row["place"] for row in rows} == {0, 1, 2, 3}
    assert draws.measured()["put_aside"] in (0.0, 1.0)


def test_what_is_put_aside_is_counted_and_nothing_else_left_brings_it_back() -> None:
    draws = ProblemDraws(problems(a=3), DrawConfig(size=2, put_aside=50))
    trained(draws, range(1), lambda *_: [1.0, 1.0])
    assert draws.measured() == {"put_aside": 2.0, "came_back": 0.0}
    assert len(drawn(trained(draws, range(1, 2), lambda *_: [1.0, 1.0]))[0]) == 2
    assert draws.measured()["put_aside"] == 3.0
    assert draws.measured()["came_back"] == 1.0
    # Groups of which too little was graded say nothing.
    unknown = ProblemDraws(problems(a=3), DrawConfig(size=2, put_aside=50))
    trained(unknown, range(1), lambda *_: [1.0, None])
    assert unknown.measured()["put_aside"] == 0.0


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    size=st.integers(1, 6),
    rest=st.integers(0, 3),
    resample=st.integers(0, 2),
    outcomes=st.lists(st.sampled_from([(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (None, 1.0)]), min_size=1, max_size=40),
    stop=st.integers(1, 11),
)
def test_a_run_that_goes_on_draws_what_one_that_was_never_stopped_does(
    sizes: list[int],
    size: int,
    rest: int,
    resample: int,
    outcomes: list[tuple[float | None, float | None]],
    stop: int,
) -> None:
    own = problems(**{chr(97 + number): count for number, count in enumerate(sizes)})
    config = DrawConfig(size=size, put_aside=rest, weights={"a": 2.0})

    def solve(step: int, place: int) -> list[float | None]:
        return [*outcomes[(7 * step + place) % len(outcomes)]]

    whole = trained(ProblemDraws(own, config), range(12), solve, resample)
    before = [row for row in whole if row["step"] <= stop]
    again = ProblemDraws(own, config)
    again.catch_up(stop, before)
    assert before + trained(again, range(stop, 12), solve, resample) == whole
    for places in drawn(whole):
        assert len(places) == len(set(places))


def test_sources_are_drawn_by_their_weights() -> None:
    own = problems(a=50, b=9, c=30)
    draws = ProblemDraws(own, DrawConfig(size=4, weights={"a": 2, "b": 1, "c": 1}))
    counts: Counter[str] = Counter()
    for step in range(200):
        batch = Counter(own[place].source for place in draws.batch(step))
        assert batch["a"] == 2
        counts += batch
    assert counts["a"] == 400
    assert 170 < counts["b"] < 230
    with pytest.raises(ConfigError, match="no problems of d"):
        ProblemDraws(own, DrawConfig(size=4, weights={"d": 1}))


def test_problems_that_have_changed_are_told() -> None:
    config = DrawConfig(size=2, put_aside=1)
    rows = trained(ProblemDraws(problems(a=9), config), range(3), lambda *_: [0.0, 1.0])
    with pytest.raises(DataError, match="other problems than those that are here now"):
        ProblemDraws(problems(a=8), config).catch_up(3, rows)
