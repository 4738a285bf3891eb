# SPDX-License-Identifier: Apache-2.0
"""Several jobs work on the same units: each takes the next one that nobody has, until all are finished.

The queue is the output folder: a unit is taken by its lock, which ends with the process that holds it, and finished by
its `.done`. So a slow job holds up only what it has taken, a lost one only until its locks end, and a job that is added
later helps at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from newskills.base.errors import LockedError
from newskills.run.engine.execute import SIGNALLED, Units, execute
from newskills.run.planning.spec import RunResult, RunSpec, Status

POLL = 2.0
"""Seconds between two looks at units that other jobs have."""
ENDED: tuple[Status, ...] = ("done", "failed")
"""How a unit ends by itself; else the process has to stop."""


def execute_shared(
    spec: RunSpec, *, environ: Mapping[str, str] | None = None, begin: Callable[[], object] | None = None
) -> RunResult:
    """As `execute`, for the units that this process can take; returns when none is left, here or elsewhere.

    A unit that failed here is left to others. Raises NewskillsError for what can be refused before the first request.
    """
    tried: set[Path] = set()
    total = RunResult(units=[])
    while True:
        before = len(tried)
        for unit in spec.units:
            if unit.paths.output in tried:
                continue
            alone = replace(spec, units=(unit,), shared=False)
            try:
                result = execute(alone, environ=environ, begin=begin, more=Units(spec.units, tried))
            except LockedError:
                continue
            tried.add(unit.paths.output)
            total = _added(total, result)
            if result.exit_code > SIGNALLED or any(unit.status not in ENDED for unit in result.units):
                return total
        if len(tried) == len(spec.units):
            return total
        if len(tried) == before:
            time.sleep(POLL)


def _added(total: RunResult, result: RunResult) -> RunResult:
    total.units += result.units
    total.retries += result.retries
    if result.exit_code:
        total.exit_code, total.message = result.exit_code, result.message
    return total
