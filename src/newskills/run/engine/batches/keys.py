# SPDX-License-Identifier: Apache-2.0
"""Names of requests that stay the same from process to process, so that one that was submitted is known again."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar

from newskills.base.records import Request, Sample
from newskills.run.planning.spec import Unit


class RowRequests:
    """Names the requests of one row, in the order in which they are made; equal ones are told apart by their number.

    `started` of the unit is part of the name: work that begins anew is asked anew.
    """

    def __init__(self, row: str = "") -> None:
        self._row = row
        self._counts: Counter[str] = Counter()

    def name(self, request: Request, model: str) -> str:
        """Return the name of the row's next request to `model`."""
        digest = request.key(f"{self._row} {model}")
        self._counts[digest] += 1
        return f"{digest}-{self._counts[digest]}"


def requests_of(unit: Unit, started: float, sample: Sample) -> RowRequests:
    """Return what names the requests of `sample`."""
    return RowRequests(f"{unit.label} {started} {sample.position} {sample.id}")


ROW_REQUESTS: ContextVar[RowRequests | None] = ContextVar("newskills_row_requests", default=None)
"""Of the row that the running task works on: nothing between the engine and an endpoint need know of it."""
