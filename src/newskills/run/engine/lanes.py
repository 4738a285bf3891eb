# SPDX-License-Identifier: Apache-2.0
"""Units as the engine works on them, and the order in which their rows are asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count, zip_longest

from newskills.base.errors import NewskillsError
from newskills.base.protocols import Kit, PreparesAhead
from newskills.run.engine.early_stop import EarlyStop
from newskills.run.engine.grader_pool import Grading
from newskills.run.engine.preflight import PreparedUnit
from newskills.run.engine.unit import PendingRow, UnitRun
from newskills.run.planning.config import EndpointConfig, GenerationConfig
from newskills.run.records.log import Disk
from newskills.solve.chat import MAIN


def servers_of(config: GenerationConfig) -> dict[str, EndpointConfig]:
    """Return the endpoints that a row of `config` may ask, by role."""
    return {**config.models, MAIN: config.server}


class Lane:
    """A unit with what it uses, and its finishing task once all rows are answered. Opened when its turn comes."""

    def __init__(self, prepared: PreparedUnit, kit: Kit, grading: Grading | None) -> None:
        self.run: UnitRun = prepared.run
        self.solver = prepared.solver
        self.kit = kit
        self.finish: asyncio.Task[None] | None = None
        self._endpoints, self._grading = kit.models, grading

    def open(self, disk: Disk, on_error: Callable[[NewskillsError], None]) -> None:
        self.run.open(self.solver, disk, on_error, self._grading)
        self.kit.models = {**self._endpoints, MAIN: self.run.with_cache(self._endpoints[MAIN])}


Turn = tuple[Lane, PendingRow | EarlyStop | None]
"""What a worker does next: a row; wait until a rule allows more; or let others work."""


def prepared_ahead(turns: Iterator[Turn], lanes: Sequence[Lane]) -> Iterator[Turn]:
    """Return the turns; solvers of the lanes that can prepare ahead are told of their next rows."""
    ahead = max((lane.run.config.environment.warm for lane in lanes), default=0)
    if ahead and any(isinstance(lane.solver, PreparesAhead) for lane in lanes):
        return _prepared_ahead(turns, ahead)
    return turns


def _prepared_ahead(turns: Iterator[Turn], ahead: int) -> Iterator[Turn]:
    upcoming: deque[Turn] = deque()
    for lane, pending in turns:
        if upcoming and isinstance(pending, PendingRow) and isinstance(lane.solver, PreparesAhead):
            lane.solver.prepare_ahead(pending.sample, lane.kit)
        upcoming.append((lane, pending))
        if len(upcoming) > ahead:
            yield upcoming.popleft()
    yield from upcoming


def turns_of(lanes: Sequence[Lane], stop: EarlyStop | None) -> Iterator[Turn]:
    """Yield the rows of one unit, or of all seeds of a benchmark that `stop` watches, problem by problem."""
    problems = zip_longest(*(lane.run.pending_rows() for lane in lanes))
    for rank in count():
        while stop is not None and stop.waits(rank) and not any(lane.run.given_up for lane in lanes):
            yield lanes[0], stop
        problem = None if stop is not None and stop.ends(rank) else next(problems, None)
        if problem is None or all(lane.run.given_up for lane in lanes):
            return
        for lane, pending in zip(lanes, problem, strict=True):
            if not lane.run.given_up:
                yield lane, pending
