# SPDX-License-Identifier: Apache-2.0
"""Several jobs work on the same units: each takes the next one that nobody has, until all are finished.

The queue is the output folder: a unit is taken by its lock, which ends with the process that holds it, and finished by
its `.done`. So a slow job holds up only what it has taken, a lost one only until its locks end, and a job that is added
later helps at once. Where all that is left is taken, a few jobs stay to take over from those that are lost; the others
end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from newskills.base.errors import LockedError
from newskills.base.store import locked
from newskills.run.engine.execute import SIGNALLED, Units, claim, execute
from newskills.run.planning.spec import RunResult, RunSpec, Status

POLL, SLOWEST_POLL = 2.0, 60.0
"""Seconds between two looks at units that other jobs have: the first, and the longest after many in vain."""
TAKEN_FOR_EACH = 16
"""Units that other jobs have, for each job that stays behind the first."""
ENDED: tuple[Status, ...] = ("done", "failed")
"""How a unit ends by itself; else the process has to stop."""


def execute_shared(
    spec: RunSpec, *, environ: Mapping[str, str] | None = None, begin: Callable[[], object] | None = None
) -> RunResult:
    """As `execute`, for the units that this process can take; returns when none is left, or enough others wait.

    A unit that failed here is left to others. Raises NewskillsError for what can be refused before the first request.
    """
    tried: set[Path] = set()
    total = RunResult(units=[])
    paths = {unit.paths.output: unit for unit in spec.units}

    def work_on(path: Path) -> RunResult:
        alone = replace(spec, units=(paths[path],), shared=False)
        return execute(alone, environ=environ, begin=begin, more=Units(spec.units, tried))

    pause = POLL
    with ExitStack() as stack:
        place: int | None = None
        while True:
            before = len(tried)
            for _, result in claim(paths, tried, work_on):
                total = _added(total, result)
                if result.exit_code > SIGNALLED or any(unit.status not in ENDED for unit in result.units):
                    return total
            taken = len(paths) - len(tried)
            if not taken:
                return total
            if len(tried) > before:
                pause = POLL
                continue
            if place is None:
                place = _wait_in(spec.units[0].paths.output.parent, staying(taken), stack)
            if place is None or place >= staying(taken):
                return total
            time.sleep(pause)
            pause = min(2 * pause, SLOWEST_POLL)


def staying(taken: int) -> int:
    """How many jobs wait for `taken` units that other jobs have; the others end, and give their nodes back."""
    return 1 + taken // TAKEN_FOR_EACH


def _wait_in(folder: Path, places: int, stack: ExitStack) -> int | None:
    """The first free place among those that wait there; None: there is none. Raises StorageError."""
    for place in range(places):
        try:
            stack.enter_context(locked(folder / f".waiting_{place}.lock", "A place to wait"))
        except LockedError:
            continue
        return place
    return None


def _added(total: RunResult, result: RunResult) -> RunResult:
    total.units += result.units
    total.retries += result.retries
    if result.exit_code:
        total.exit_code, total.message = result.exit_code, result.message
    return total
