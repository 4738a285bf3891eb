# SPDX-License-Identifier: Apache-2.0
"""Answers that are there, kept where the input file has got more rows, or other ones in some places."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row, Sample
from newskills.base.store import atomic_write
from newskills.run.planning.spec import Unit
from newskills.run.records.completeness import damage_of
from newskills.run.records.damage import SEAL_FIELD, overlaps_range
from newskills.run.records.log import (
    KEY_FIELD,
    LogReader,
    decode_sound_line,
    log_line,
    log_lines,
    record_decoder,
    ungraded_record,
)
from newskills.run.records.record import record_of
from newskills.run.records.rows import Input

_HINT = "Use another output folder, or start these files over with --rerun_done."


class KeptRows(Struct, frozen=True, kw_only=True):
    """How many rows had an answer, and how many of them keep it."""

    before: int
    kept: int


def keep_answers(unit: Unit, source: Input, rows: range, drop: frozenset[str], settings: str) -> KeptRows | None:
    """Make the generation log of `unit` anew, from its records whose rows still stand at the same place, unchanged.

    The other rows are left out, and so asked for. Nothing is written, and None returned, where less than half of the
    records are kept: then it is another input. Fields `drop` are verdicts, which are made again. `settings`: the hash
    of today's. A kill leaves the old records or the new log. Raises DataError for fewer rows than there are records,
    StorageError.
    """
    paths, place = unit.paths, unit.config.async_position_key
    recorded = paths.log if paths.log.exists() else paths.output
    offsets = _record_offsets(unit)
    if offsets and max(offsets) >= len(rows):
        raise DataError(
            f"{source.path} now has {len(rows):,} rows, but {recorded} has the answer to row {max(offsets) + 1:,}.",
            hint=f"Put the missing rows back. {_HINT}",
        )
    kept = []
    with LogReader(recorded) as reader:
        for sample in source.samples(rows):
            if sample.position in offsets and _is_same_row(
                unit, sample, reader.line(offsets[sample.position]), drop
            ):
                kept.append(sample.position)
        if 2 * len(kept) < len(offsets):
            return None
        with atomic_write(paths.log) as log:
            for position in kept:
                record: Row = record_decoder.decode(reader.line(offsets[position]))
                record.pop(SEAL_FIELD, None)
                log.write(
                    log_line(ungraded_record(record, drop), place, position, record.get(KEY_FIELD, ""), settings)
                )
    paths.remove_grades()
    for path in (paths.index, paths.done):
        path.unlink(missing_ok=True)
    return KeptRows(before=len(offsets), kept=len(kept))


def _record_offsets(unit: Unit) -> dict[int, int]:
    """Return position of a row → where its record begins in the log, else in the finished file."""
    if not unit.paths.log.exists():
        damage = damage_of(unit.paths.output)
        return {
            position: offset
            for position, (offset, line) in enumerate(log_lines(unit.paths.output))
            if not overlaps_range(damage, offset, len(line))
        }
    offsets: dict[int, int] = {}
    for offset, line in log_lines(unit.paths.log):
        record = decode_sound_line(record_decoder, line)
        if record is not None:
            offsets[record[unit.config.async_position_key]] = offset
    return offsets


def _is_same_row(unit: Unit, sample: Sample, line: bytes, drop: frozenset[str]) -> bool:
    """Return whether the record in `line` is that of the row as it is now; fields that an answer overwrites are
    not compared."""
    record: Any = decode_sound_line(record_decoder, line)
    if record is None:
        return False
    written = drop | {unit.config.generation_key}
    fields = record_of(unit.config, sample, {}).items()
    return all(name in record and record[name] == value for name, value in fields if name not in written)
