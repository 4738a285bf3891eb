# SPDX-License-Identifier: Apache-2.0
"""What a load test is worth: the figures of its levels."""

from __future__ import annotations

from msgspec import Struct

from newskills.base.records import Row
from newskills.run.load_testing.figures import LevelFigures
from newskills.run.load_testing.records import LoadKind

SUMMARY = "load_test.json"


class LoadTest(Struct, frozen=True, kw_only=True):
    """Levels in the order of their loads.

    workload  what was sent, and to whom
    limits    largest ttft, tpot, e2el of a request in milliseconds
    share     of requests that must be within all limits
    find      what was searched for; None: nothing
    highest   the highest load that was within the limits; None: there are none, or it was not
    records   file with a line for each request
    """

    model: str
    address: str
    workload: Row
    levels: list[LevelFigures]
    limits: dict[str, float]
    share: float
    find: LoadKind | None
    highest: float | None
    records: str


def meets_limits(figures: LevelFigures, share: float) -> bool:
    """Return whether enough requests of a level were within the limits."""
    return figures.good_share is not None and figures.good_share >= share


def highest_passing(levels: list[LevelFigures], share: float) -> float | None:
    """Return the highest load within the limits, below the first one that is not."""
    highest = None
    for figures in levels:
        if not meets_limits(figures, share):
            break
        highest = figures.value
    return highest
