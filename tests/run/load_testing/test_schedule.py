# SPDX-License-Identifier: Apache-2.0
"""When requests of an open loop are due, and how the highest load is searched for."""

from __future__ import annotations

import asyncio
import itertools
from itertools import pairwise
from typing import Any

import pytest

from newskills.run.load_testing.records import LoadLevel
from newskills.run.load_testing.schedule import due_times
from newskills.run.load_testing.search import highest_load


def due(count: int, **load: Any) -> list[float]:
    level = LoadLevel(**{"kind": "rate", "value": 10.0, "requests": count, **load})
    return list(itertools.islice(due_times(level), count or 5000))


def variation(times: list[float]) -> float:
    """Standard deviation of the gaps by their mean: 1 for a Poisson process, 1 / √burstiness for gamma gaps."""
    gaps = [later - sooner for sooner, later in pairwise([0.0, *times])]
    mean = sum(gaps) / len(gaps)
    return (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 / mean


def test_the_rate_is_met_exactly_and_gaps_are_as_asked_for() -> None:
    for burstiness, expected in ((1.0, 1.0), (0.25, 2.0), (4.0, 0.5)):
        times = due(4000, burstiness=burstiness)
        assert len(times) == 4000
        assert times == sorted(times)
        assert times[-1] == pytest.approx(400.0)
        assert variation(times) == pytest.approx(expected, rel=0.1)


def test_even_gaps_bursts_and_all_at_once() -> None:
    assert due(4, burstiness=0.0) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    bursts = due(10, burst=5)
    assert len(set(bursts)) == 2
    assert bursts[-1] == pytest.approx(1.0)
    assert due(3, value=0.0) == [0.0, 0.0, 0.0]


def test_without_a_number_of_requests_they_go_on() -> None:
    times = due(0)
    assert len(times) == 5000
    assert times[-1] == pytest.approx(500, rel=0.1)


def test_a_seed_repeats_a_schedule() -> None:
    assert due(50) == due(50)
    assert due(50) != due(50, seed=1)


@pytest.mark.parametrize(
    ("limit", "first", "whole", "expected"),
    [(37.0, 1.0, False, 37.0), (37.0, 500.0, False, 37.0), (13.0, 1.0, True, 13.0), (0.001, 1.0, False, None)],
)
def test_the_highest_load_is_found(limit: float, first: float, whole: bool, expected: float | None) -> None:
    tried: list[float] = []

    async def passes(load: float) -> bool:
        tried.append(load)
        return load <= limit

    highest = asyncio.run(highest_load(passes, first, whole=whole))
    assert len(tried) == len(set(tried))
    assert len(tried) <= 14
    if expected is None:
        assert highest is None
    elif whole:
        assert highest == expected
    else:
        assert highest is not None
        assert expected / 1.05 <= highest <= expected
