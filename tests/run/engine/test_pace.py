# SPDX-License-Identifier: Apache-2.0
"""The end of a run, told in virtual time for rows of which some take much longer than others."""

from __future__ import annotations

import heapq
import random
from types import SimpleNamespace

import pytest

from newskills.run.engine.pace import Pace


def told(
    monkeypatch: pytest.MonkeyPatch, *, rows: int, at_once: int, spread: float
) -> dict[int, tuple[float, float | None, float]]:
    """Rows done → (seconds that are really left, those that are told, those that the speed so far would tell)."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("newskills.run.engine.pace.time", SimpleNamespace(monotonic=lambda: clock.now))
    draw, pace = random.Random(1), Pace()
    ends: list[tuple[float, int]] = []
    seen: dict[int, tuple[float, float | None]] = {}

    def begin() -> None:
        heapq.heappush(ends, (clock.now + 10 * draw.lognormvariate(0, spread), pace.begin()))

    for _ in range(at_once):
        begin()
    for done in range(1, rows + 1):
        clock.now, number = heapq.heappop(ends)
        pace.end(number, answered=True)
        if done + len(ends) < rows:
            begin()
        seen[done] = clock.now, pace.seconds_left(rows - done - len(ends))
    return {done: (clock.now - at, left, at / done * (rows - done)) for done, (at, left) in seen.items()}


def test_rows_of_much_the_same_length(monkeypatch: pytest.MonkeyPatch) -> None:
    at = told(monkeypatch, rows=2000, at_once=64, spread=0.2)
    for done in (200, 600, 1000, 1400, 1800, 1940, 1990):
        left, said, _ = at[done]
        assert said is not None
        assert left / 1.5 < said < left * 1.5


def test_a_long_tail_is_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    at = told(monkeypatch, rows=2000, at_once=64, spread=1.0)
    for done in (200, 600, 1000, 1400, 1800):
        left, said, by_speed = at[done]
        assert said is not None
        assert abs(said - left) < abs(by_speed - left)
        assert left / 1.5 < said < left * 1.5
    left, said, by_speed = at[1990]
    assert by_speed < left / 20
    assert said is not None
    assert left / 4 < said < left * 4


def test_nothing_is_said_while_most_rows_take_longer_than_any_that_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    at = told(monkeypatch, rows=1000, at_once=512, spread=1.0)
    assert at[20][1] is None
    assert at[1000][1] is None
