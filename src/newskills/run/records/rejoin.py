# SPDX-License-Identifier: Apache-2.0
"""Judgements that were made, joined to answers that have other fields than they had then (they were graded anew)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from newskills.base.errors import guard
from newskills.base.protocols import Solver
from newskills.base.records import Row, Sample
from newskills.base.store import atomic_write, read_rows
from newskills.run.engine.unit import REFUSED_FIELD, request_key
from newskills.run.planning.spec import Unit
from newskills.run.records.log import KEY_FIELD, log_line, log_records
from newskills.run.records.record import record_of
from newskills.solve.judges.judge import ASKED, PREFIX


def rejoin_judgements(unit: Unit, samples: Iterable[Sample], solver: Solver, settings: str) -> None:
    """Make the generation log of `unit` anew: the judgements of samples about which the judge would be asked the same
    today. The others are left out, and so asked for. `settings`: the hash of today's. Raises DataError,
    StorageError."""
    paths, config = unit.paths, unit.config
    recorded = {
        str(record.get("id")): (key, record) for key, record in _asked_records(unit) if REFUSED_FIELD not in record
    }
    with atomic_write(paths.log) as file:
        for sample in samples:
            key = request_key(guard(partial(solver.request, sample)))
            before, record = recorded.get(sample.id, ("", {}))
            if before == key:
                fields = {k: v for k, v in record.items() if k == config.generation_key or k.startswith(PREFIX)}
                line = record_of(config, sample, fields)
                file.write(log_line(line, config.async_position_key, sample.position, key, settings))
    paths.remove_grades()
    for path in (paths.index, paths.done):
        path.unlink(missing_ok=True)


def _asked_records(unit: Unit) -> Iterator[tuple[str, Row]]:
    """Yield (what was asked, record), finished or not."""
    if unit.paths.log.exists():
        rows_of_log = log_records(unit.paths.log)
    else:
        rows_of_log = read_rows(unit.paths.output)
    for record in rows_of_log:
        yield record.get(KEY_FIELD) or record.get(ASKED, ""), record
