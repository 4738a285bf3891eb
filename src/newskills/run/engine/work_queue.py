# SPDX-License-Identifier: Apache-2.0
"""Several jobs work on the same units: each takes the next one that nobody has, until all are finished.

The queue is the output folder: a unit is taken by its lock, which ends with the process that holds it, and finished by
its `.done`. So a slow job holds up only what it has taken, a lost one only until its locks end, and a job that is added
later helps at once. What nobody has begun is known by the names in the folder, so that a lock that is tried is mostly
free. Where all that is left is taken, a few jobs stay to take over from those that are lost; the others end.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from newskills.base.errors import LockedError
from newskills.base.store import hold_lock
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.execute import SIGNAL_EXIT_BASE, SharedUnits, claim_work, execute
from newskills.run.engine.preflight import check_same_run
from newskills.run.planning.queue import ChunkQueue
from newskills.run.planning.spec import RunResult, RunSpec, Status
from newskills.run.records.completeness import is_cut, is_marked
from newskills.run.records.paths import done_path

POLL, SLOWEST_POLL = 2.0, 60.0
"""Seconds between two looks at units that other jobs have: the first, and the longest after many in vain."""
TAKEN_FOR_EACH = 16
"""Units that other jobs have, for each job that stays behind the first."""
TRIES_PER_LOOK = 64
"""Begun units that are tried between two looks: their locks are most often held."""
STALE_SECONDS = 60.0
"""Seconds after which a look is not worth much any more."""
ENDED_STATES: tuple[Status, ...] = ("done", "failed")
"""How a unit ends by itself; else the process has to stop."""


class OpenPlaces(NamedTuple):
    """Places of units that are not finished: those that nobody has begun, and those that somebody has or had."""

    fresh: Iterable[int]
    begun: Iterable[int]


def execute_shared(
    spec: RunSpec, *, environ: Mapping[str, str] | None = None, begin: Callable[[], object] | None = None
) -> RunResult:
    """Execute, as `execute` does, the units that this process can take; return when none is left, or enough others
    wait.

    A unit that failed here is left to others. Raises NewskillsError for what can be refused before the first request.
    """
    tried: set[int] = set()
    total = RunResult(units=[])
    queue = ChunkQueue(spec)

    looks = itertools.count()

    def look() -> OpenPlaces:
        return look_at(queue, tried, closely=next(looks) == 0)

    def work_on(place: int) -> RunResult:
        unit = queue[place]
        same = (other for other in places_to_try(look, tried) if other != place and queue.name(other) == unit.name)
        alone = replace(spec, units=(unit,), chunks=(), first=0, shared=False)
        return execute(alone, environ=environ, begin=begin, more=SharedUnits(queue, tried, same))

    environment = os.environ if environ is None else environ
    _check_finished(queue, environment)
    pause = POLL
    with ExitStack() as stack:
        place: int | None = None
        while True:
            before = len(tried)
            for _, result in claim_work(places_to_try(look, tried), tried, work_on):
                total = _add_result(total, result)
                if result.exit_code > SIGNAL_EXIT_BASE or any(
                    unit.status not in ENDED_STATES for unit in result.units
                ):
                    return total
            seen = look()
            taken = sum(1 for _ in itertools.chain(seen.fresh, seen.begun))
            if not taken:
                return total
            if len(tried) > before:
                pause = POLL
                continue
            if place is None:
                place = _wait_in(queue[0].merged.parent, staying_jobs(taken), stack)
            if place is None or place >= staying_jobs(taken):
                return total
            time.sleep(pause)
            pause = min(2 * pause, SLOWEST_POLL)


def places_to_try(
    look: Callable[[], OpenPlaces], tried: Collection[int], clock: Callable[[], float] = time.monotonic
) -> Iterator[int]:
    """Yield the places that are worth trying, looked up anew where the last look is old; end when a look has nothing to
    take.

    `tried` grows meanwhile, as its reader takes what it is offered.
    """
    while True:
        seen, since = look(), clock()
        for place in itertools.chain(seen.fresh, itertools.islice(seen.begun, TRIES_PER_LOOK)):
            yield place
            if place in tried and clock() - since > STALE_SECONDS:
                break
        else:
            return


def look_at(queue: ChunkQueue, tried: Collection[int], *, closely: bool) -> OpenPlaces:
    """Find open places by one listing of each folder. Chunks of a merged file are finished with it, unless rows
    were lost since, which counting them (`closely`) shows.

    Chunks that are all finished and that nobody has joined are taken up again.
    """
    listings: dict[Path, set[str]] = {}
    fresh, begun = set[int](), set[int]()
    for places in queue.files():
        unit = queue[places.start]
        folder = unit.merged.parent
        if folder not in listings:
            listings[folder] = _folder_names(folder)
        names = listings[folder]
        if {unit.merged.name, done_path(unit.merged).name} <= names and unit.config.skip_filled:
            waiting = places if closely and is_cut(unit) else ()
            begun.update(waiting)
            continue
        unbegun, unfinished = set[int](), set[int]()
        for place in places:
            paths = queue.paths(place)
            if paths.lock.name not in names:
                unbegun.add(place)
            elif not {paths.done.name, paths.output.name} <= names:
                unfinished.add(place)
        fresh |= unbegun
        begun |= unfinished if unbegun or unfinished else set(places)
    turn = [place for place in queue.turn() if place not in tried]
    return OpenPlaces([p for p in turn if p in fresh], _rotate_places([p for p in turn if p in begun]))


def staying_jobs(taken: int) -> int:
    """Return how many jobs wait for `taken` units of other jobs; the others end, and release their nodes."""
    return 1 + taken // TAKEN_FOR_EACH


def _check_finished(queue: ChunkQueue, environ: Mapping[str, str]) -> None:
    """Refuse finished chunks of another run, since they are joined with what is made now. Raises DataError."""
    with closing(RunBuilder(environ)) as builder:
        for places in queue.files():
            unit = queue[places.start]
            if not unit.config.skip_filled or is_marked(unit):
                continue
            names = _folder_names(unit.merged.parent)
            finished = next((p for p in places if queue.paths(p).done.name in names), None)
            if finished is not None:
                check_same_run(queue[finished], builder)


def _folder_names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except FileNotFoundError:
        return set()


def _rotate_places(places: list[int]) -> list[int]:
    """Rotate the places to begin elsewhere at each look, so that all are tried."""
    start = 0
    if len(places) > TRIES_PER_LOOK:
        start = int(time.monotonic() * 1000) % len(places)
    return [*places[start:], *places[:start]]


def _wait_in(folder: Path, places: int, stack: ExitStack) -> int | None:
    """Take the first free place among those that wait there; return None where there is none. Raises StorageError."""
    for place in range(places):
        try:
            stack.enter_context(hold_lock(folder / f".waiting_{place}.lock", "A place to wait"))
        except LockedError:
            continue
        return place
    return None


def _add_result(total: RunResult, result: RunResult) -> RunResult:
    total.units += result.units
    total.retries += result.retries
    if result.exit_code:
        total.exit_code, total.message = result.exit_code, result.message
    return total
