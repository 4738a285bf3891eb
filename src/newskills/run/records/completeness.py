# SPDX-License-Identifier: Apache-2.0
"""Whether a finished file still holds all rows that its exit record tells of.

A marker only says that the file was whole once: a full disk, a copy that broke off or an editor may have cut it since.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, storage_error
from newskills.base.store import atomic_write, count_rows, open_for_reading
from newskills.run.planning.spec import RUN_FILE, RunSpec, Unit, load_spec
from newskills.run.records.damage import damaged_blocks, overlaps_range
from newskills.run.records.log import log_line, log_lines, log_records, ungraded_record
from newskills.run.records.paths import OutputPaths, chunk_path, done_path
from newskills.run.records.rows import Input, chunk_bounds, scan_rows
from newskills.run.records.state import RunState, load_state

_MAX_SHOWN_IDS = 5
_MAX_PARENTS = 6
"""Folders above a file among which its `run.json` may lie."""


class _RowHead(Struct):
    id: str | int = ""


_head = msgspec.json.Decoder(_RowHead)


def row_count(path: Path) -> int:
    """Return `count_rows` of the file, counted once until it changes. Raises DataError for what cannot be read."""
    if not path.exists():
        return 0
    stat = path.stat()
    return _row_count(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=1024)
def _row_count(path: Path, changed: int, size: int) -> int:
    return count_rows(path)


def expected_rows(output: Path) -> int | None:
    """Return the number of rows `output` was finished with, by its exit record or those of its chunks; None where
    none says so."""
    whole, chunk = _finished_state(output), _finished_state(chunk_path(output, 0))
    if whole is not None and (chunk is None or (chunk.ended or 0) < (whole.ended or 0)):
        return whole.rows
    if chunk is not None:
        return chunk.merged_rows
    return None


def _finished_state(output: Path) -> RunState | None:
    state = load_state(OutputPaths(output).state)
    if state is not None and state.status == "done":
        return state
    return None


def is_marked(unit: Unit) -> bool:
    """Return whether a marker says that the unit is finished, and its file exists; for a chunk, the merged file
    will do."""
    merged = done_path(unit.merged).exists() and unit.merged.exists()
    return merged or (unit.paths.done.exists() and unit.paths.output.exists())


def is_cut(unit: Unit) -> bool:
    """Return whether the file of a unit that was finished lacks rows, or holds bytes that were not written.

    Raises DataError."""
    output, state = unit.paths.output, _finished_state(unit.paths.output)
    if state is None:
        return is_marked(unit) and not _file_size(output) and not _file_size(unit.merged)
    if not output.exists():
        return state.merged_rows is not None and row_count(unit.merged) < state.merged_rows
    if _file_size(output) != state.size:
        return row_count(output) < state.rows
    return bool(damaged_blocks(output, state.sums, state.written))


def _file_size(path: Path) -> int:
    if path.exists():
        return path.stat().st_size
    return 0


def take_over(unit: Unit, source: Input, rows: range, drop: frozenset[str], settings: str) -> int:
    """Make the generation log of a unit from what is left of its file, or of the merged one; return how many rows.

    Fields `drop` are left out (verdicts, which are made again), and so are lines that cannot be read or have changed,
    whose rows are asked again; those go to the end of `paths.damaged`.
    `settings`: the hash of today's. Raises DataError, StorageError.
    """
    paths = unit.paths
    left = paths.output if paths.output.exists() else unit.merged
    positions = {sample.id: sample.position for sample in source.samples(rows)}
    _set_damaged_aside(left, paths.damaged, damage := damage_of(left))
    rows_left = log_records(left, lambda offset, line: overlaps_range(damage, offset, len(line)))
    kept = [(positions.pop(str(row.get("id")), None), row) for row in rows_left]
    if numbered := [(position, row) for position, row in kept if position is not None]:
        with atomic_write(paths.log) as log:
            for position, row in numbered:
                log.write(
                    log_line(ungraded_record(row, drop), unit.config.async_position_key, position, "", settings)
                )
    else:
        paths.output.unlink(missing_ok=True)
    paths.remove_grades()
    paths.index.unlink(missing_ok=True)
    for marked in (paths, OutputPaths(unit.merged)):
        marked.done.unlink(missing_ok=True)
    return len(numbered)


def damage_of(output: Path) -> list[range]:
    """Return the byte ranges of a finished file that are not as they were written."""
    state = _finished_state(output)
    if state is None or not output.exists() or _file_size(output) != state.size:
        return []
    return damaged_blocks(output, state.sums, state.written)


def _set_damaged_aside(output: Path, aside: Path, damage: list[range]) -> None:
    if not damage:
        return
    try:
        with aside.open("ab") as kept, open_for_reading(output) as file:
            for part in damage:
                file.seek(part.start)
                kept.write(file.read(len(part)))
    except OSError as error:
        raise storage_error(error, aside) from error


def check_complete(output: Path, first: int = -1) -> None:
    """Raise DataError that names the missing rows and the command that makes them, if `output` lacks some.

    With `first` ≥ 0 only so many rows matter. A file that was never merged is not looked at.
    """
    if not output.exists():
        return
    if damage := damage_of(output):
        bytes_changed = sum(map(len, damage))
        raise DataError(
            f"{output} is not as it was written: up to {bytes_changed:,} bytes from byte {damage[0].start:,} on differ "
            "from their checksums.",
            hint=f"To generate the rows in them again: {_remedy_sentence(output, _made_by(output)[0])}",
        )
    expected, rows_now = expected_rows(output), row_count(output)
    if expected is None or rows_now >= expected or 0 <= first <= rows_now:
        return
    spec, unit = _made_by(output)
    missing = _missing_rows(output, unit) if unit is not None else []
    which = f": {_format_missing(missing)}" if missing else ""
    raise DataError(
        f"{output} was finished with {expected:,} rows and now has {rows_now:,}: {expected - rows_now:,} are "
        f"missing{which}.",
        hint=f"To generate them: {_remedy_sentence(output, spec)}",
    )


def _made_by(output: Path) -> tuple[RunSpec | None, Unit | None]:
    """Return the run that wrote `output`, and its unit, where a folder above still tells."""
    for folder in islice(output.resolve().parents, _MAX_PARENTS):
        if (folder / RUN_FILE).exists():
            try:
                spec = load_spec(folder)
            except ConfigError:
                return None, None
            names = (unit for unit in spec.units if unit.merged.name == output.name)
            return spec, next((u for u in names if u.merged.parent.name == output.resolve().parent.name), None)
    return None, None


def _missing_rows(output: Path, unit: Unit) -> list[tuple[int, str]]:
    """Return (row of the input from 1, id) of each row missing from `output`; empty where the input is gone."""
    try:
        source = scan_rows(Path(unit.config.input_file))
    except DataError:
        return []
    there = set(_record_ids(output))
    samples = source.samples(chunk_bounds(source.rows, None, None, unit.config.max_samples))
    return [(sample.position + 1, sample.id) for sample in samples if sample.id not in there]


def _record_ids(path: Path) -> Iterator[str]:
    for _, line in log_lines(path):
        try:
            yield str(_head.decode(line).id)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue


def _format_missing(missing: list[tuple[int, str]]) -> str:
    """Format missing rows as `rows 601-1319 (ids a, b, c, …)`."""
    runs = []
    for _, group in groupby(enumerate(missing), key=lambda pair: pair[1][0] - pair[0]):
        numbers = [row for _, (row, _) in group]
        if len(numbers) == 1:
            rows_text = str(numbers[0])
        else:
            rows_text = f"{numbers[0]}-{numbers[-1]}"
        runs.append(rows_text)
    more = ", …" if len(runs) > _MAX_SHOWN_IDS else ""
    ids = ", ".join(name for _, name in missing[:_MAX_SHOWN_IDS]) + (
        ", …" if len(missing) > _MAX_SHOWN_IDS else ""
    )
    return f"rows {', '.join(runs[:_MAX_SHOWN_IDS])}{more} of the input (ids {ids})"


def _remedy_sentence(output: Path, spec: RunSpec | None) -> str:
    if spec is not None and spec.resume_with:
        return spec.resume_with
    return "run the command that wrote this file again; it keeps the existing rows."
