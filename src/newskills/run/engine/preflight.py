# SPDX-License-Identifier: Apache-2.0
"""Everything that can be refused before the first request: input, settings of a resume, locks, first prompt."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.limits import count_files_left
from newskills.base.protocols import NeedsCheck, Solver
from newskills.base.records import Request
from newskills.base.store import hold_lock
from newskills.prompts.renderer import Prompt
from newskills.run.engine.build import RunBuilder, grader_id
from newskills.run.engine.unit import REFUSED_FIELD, UnitRun, changed_settings, unit_result
from newskills.run.planning.spec import RunSpec, Unit, UnitResult
from newskills.run.records.chunks import count_lines, merge_if_complete
from newskills.run.records.completeness import is_cut, is_marked, take_over
from newskills.run.records.grow import keep_answers
from newskills.run.records.input_map import keep_input, read_input
from newskills.run.records.log import Damage, log_lines, restore_log, set_aside
from newskills.run.records.log_index import MIN_KEPT_ROWS, KeptIndex, LogIndex
from newskills.run.records.paths import done_path
from newskills.run.records.rejoin import rejoin_judgements
from newskills.run.records.rows import Input, chunk_bounds
from newskills.run.records.state import INPUT, RunState, asked_settings, load_state, setting_changes

RESERVED_FILES, FILES_OF_A_WORKER = 32, 3
"""Files that a run opens beside its connections: logs, locks, the event loop; and those of a process that grades."""


def request_window(units: int) -> int | None:
    """Return how many connections this process has files for, beside the locks of `units`; None: any number.

    Raises ConfigError where there is none.
    """
    left = count_files_left()
    if left is None:
        return None
    needed = RESERVED_FILES + FILES_OF_A_WORKER * len(os.sched_getaffinity(0)) + units
    if left <= needed:
        raise ConfigError(
            f"This process may open {left} more files, and a run needs at least {needed + 1}.",
            hint="Raise the limit: ulimit -n 1024.",
        )
    return left - needed


class PreparedUnit(Struct):
    """A unit with work to do, and its solver."""

    run: UnitRun
    solver: Solver


def prepare_unit(unit: Unit, spec: RunSpec, builder: RunBuilder, stack: ExitStack) -> PreparedUnit | UnitResult:
    """Lock the unit's file and plan what is left; a finished unit is a result at once.

    Raises DataError (input, first row, changed settings), LockedError, StorageError, ConfigError.
    """
    if not unit.config.output_file:
        raise ConfigError("++output_file is not set.")
    paths = unit.paths
    if stack.enter_context(hold_lock(paths.lock, str(paths.output))):
        paths.see_anew()
    state = load_state(paths.state)
    finished, cut = is_finished(unit), unit.config.skip_filled and is_cut(unit)
    if finished and unit.config.skip_filled and not spec.rerun_done and not Path(unit.config.input_file).exists():
        return _finished_result(unit, state)
    source, rows = _input_rows(unit, state)
    keep_input(source, paths.output.parent)
    prompt = builder.prompt(unit.config)
    wanted = _resume_settings(unit, builder, source.digest)
    if state is not None and _has_rows_of(unit, state):
        changed = setting_changes(state.settings, wanted)
    else:
        changed = []
    distinct_rows = source.rows if source.distinct else 0
    fresh = RunState(
        status="running",
        settings=wanted,
        grader=grader_id(unit.config),
        rows=len(rows),
        merged_rows=_rows_of_all_chunks(unit, source),
        distinct_rows=distinct_rows,
        started=time.time(),
    )
    if not unit.config.skip_filled or (spec.rerun_done and (finished or cut or changed)):
        solver = _checked_solver(unit, builder, prompt, source, rows)
        _start_over(unit)
        fresh.save(paths.state)
        return PreparedUnit(UnitRun(unit, source, rows, fresh, *_begin_logs(unit, len(rows), fresh)), solver)
    others = unit.config.judges and changed == [INPUT]
    has_records = paths.log.exists() or paths.output.exists()
    grown = changed == [INPUT] and has_records and not others and unit.config.num_chunks is None
    if changed and not others and not grown:
        raise changed_settings(unit, changed)
    if (
        finished
        and not others
        and not grown
        and not (state is not None and paths.output.exists() and _reopens_file(unit, state))
    ):
        return _finished_result(unit, state)
    solver = _checked_solver(unit, builder, prompt, source, rows)
    if others:
        rejoin_judgements(unit, source.samples(rows), solver, fresh.digest)
    elif grown:
        assert state is not None
        kept_rows = keep_answers(unit, source, rows, frozenset(state.grade_fields), fresh.digest)
        if kept_rows is None:
            raise changed_settings(unit, changed)
        builder.notes[
            f"{unit.label}: the input has changed; {kept_rows.kept} of {kept_rows.before} answers are kept, "
            f"{len(rows) - kept_rows.kept} rows are generated."
        ] = None
    elif cut:
        grade_fields = state.grade_fields if state is not None else ()
        kept = take_over(unit, source, rows, frozenset(grade_fields), fresh.digest)
        builder.notes[
            f"{unit.label}: {len(rows) - kept} of {len(rows)} rows were lost; they are generated again."
        ] = None
    return PreparedUnit(_resume_unit(unit, source, rows, state, fresh, builder.notes), solver)


def is_finished(unit: Unit) -> bool:
    """Return whether the marker and the whole file are there. Raises DataError."""
    return is_marked(unit) and not is_cut(unit)


def asks_nothing(unit: Unit) -> bool:
    """Return whether the rest of the unit needs no model. Raises DataError."""
    if not unit.config.skip_filled or not is_finished(unit):
        return False
    state = load_state(unit.paths.state)
    if state is None or not Path(unit.config.input_file).exists():
        return True
    if unit.config.judges and state.unjudged:
        return False
    return bool(state.settings.get("input_file") == _input_rows(unit, state)[0].digest)


def check_same_run(unit: Unit, builder: RunBuilder) -> None:
    """Refuse a finished chunk that was made with other settings, or from another input. Raises DataError."""
    state = load_state(unit.paths.state)
    if state is None or state.status != "done":
        return
    wanted = _resume_settings(unit, builder, _input_rows(unit, state)[0].digest)
    if changed := setting_changes(state.settings, wanted):
        raise changed_settings(unit, changed)


def check_begun(unit: Unit, builder: RunBuilder) -> None:
    """Refuse settings unlike those of finished rows, for an input that is not complete yet. Raises DataError."""
    state = load_state(unit.paths.state)
    if state is None or not unit.config.skip_filled or not _has_rows_of(unit, state):
        return
    wanted = _resume_settings(unit, builder, "")
    if changed := setting_changes({**state.settings, "input_file": None}, {**wanted, "input_file": None}):
        raise changed_settings(unit, changed)


def _resume_settings(unit: Unit, builder: RunBuilder, input_digest: str) -> dict[str, Any]:
    """Return the settings that a resume of `unit` must share. Raises ConfigError, UnknownNameError, DataError."""
    prompt = builder.prompt(unit.config)
    return asked_settings(
        unit.config,
        input_digest=input_digest,
        prompt=f"{prompt.name} {prompt.hash}",
        more_prompts=builder.more_prompts(unit.config),
    )


def first_request(unit: Unit, builder: RunBuilder) -> Request:
    """Return the request of the first row (dry run); for an empty chunk, that of the first row of all. Raises
    DataError."""
    state = load_state(unit.paths.state) if unit.config.output_file else None
    source, rows = _input_rows(unit, state)
    solver = builder.solver(unit.config, builder.prompt(unit.config))
    request = _first_request(solver, source, rows or range(source.rows))
    assert request is not None
    return request


def _has_rows_of(unit: Unit, state: RunState) -> bool:
    """Return whether any row was made with the settings of `state`."""
    return state.status == "done" or next(log_lines(unit.paths.log), None) is not None


def _graded_otherwise(unit: Unit, state: RunState) -> bool:
    """Return whether another grader is now requested. A run without a grader leaves verdicts as they are."""
    return unit.config.eval_type is not None and state.grader != grader_id(unit.config)


def _reopens_file(unit: Unit, state: RunState) -> bool:
    """Return whether a finished file has more to do: verdicts of another grader, or judgements that were
    refused."""
    return _graded_otherwise(unit, state) or (unit.config.judges and state.unjudged > 0)


def _finished_result(unit: Unit, state: RunState | None) -> UnitResult:
    """Return the result of an earlier process; what a kill left undone behind its marker is done now."""
    unit.paths.remove_logs()
    merged, note = False, ""
    if unit.config.num_chunks is not None:
        expected = state.merged_rows if state is not None else None
        merged = merge_if_complete(unit.merged, unit.config.num_chunks, expected, first=unit.config.chunk_id or 0)
    if state is None:
        rows = count_lines(unit.paths.output) if unit.paths.output.exists() else 0
        state = RunState(status="done", settings={}, rows=rows, done=rows)
    elif _graded_otherwise(unit, state):
        note = (
            f"graded by {state.grader or 'nothing'}, but this run asks for {grader_id(unit.config)}; for "
            f"verdicts of that grader run: ns grade --grader={unit.config.eval_type} "
            f"--input_files={unit.merged} --output_file=FILE (or start over with --rerun_done)"
        )
    return unit_result(unit, state, "done", kept=state.rows, merged=merged, note=note)


def _resume_unit(
    unit: Unit, source: Input, rows: range, before: RunState | None, state: RunState, notes: dict[str, None]
) -> UnitRun:
    paths, config = unit.paths, unit.config
    paths.failed.unlink(missing_ok=True)
    if not paths.log.exists() and paths.output.exists() and (before is None or before.status == "done"):
        _take_back(unit, before, len(rows), state.digest)
    index, kept = _log_index(unit, len(rows), state)
    kept_records = kept.records if kept else None
    damaged = index.load(paths.log, config.async_position_key, kept_records)
    if before is None and (index.done or damaged):
        _check_same(unit, index, state)
        notes[
            f"{paths.state} was lost or damaged; {index.done} rows of {paths.log.name} match these settings."
        ] = None
    if before is not None:
        state.started = before.started
        state.take_usage(before.usage)
    if before is None or before.grader != state.grader:
        paths.remove_grades()
    _keep_aside(paths.log, damaged, paths.damaged, notes)
    kept_grades = kept.grades if kept else None
    damaged = index.load_grades(paths.grades, kept_grades)
    _keep_aside(paths.grades, damaged, paths.damaged, notes)
    if before is None and paths.state.exists():
        paths.state.replace(paths.state.with_name(f"{paths.state.name}-damaged"))
    state.save(paths.state)
    return UnitRun(unit, source, rows, state, index, kept)


def _log_index(unit: Unit, rows: int, state: RunState) -> tuple[LogIndex, KeptIndex | None]:
    kept = KeptIndex(unit.paths, state.digest) if rows >= MIN_KEPT_ROWS else None
    return LogIndex(rows, graded=unit.config.eval_type is not None), kept


def _begin_logs(unit: Unit, rows: int, state: RunState) -> tuple[LogIndex, KeptIndex | None]:
    """Return the index as `_log_index` does, where there are no logs yet, and begin the files of a kept one."""
    index, kept = _log_index(unit, rows, state)
    if kept is not None:
        kept.records.load_into(index, unit.paths.log)
        kept.grades.load_into(index, unit.paths.grades)
    return index, kept


def _keep_aside(log: Path, damaged: Sequence[Damage], aside: Path, notes: dict[str, None]) -> None:
    if damaged:
        set_aside(log, damaged, aside)
        count = "A damaged line"
        if len(damaged) != 1:
            count = f"{len(damaged)} damaged lines"
        notes[f"{count} of {log} moved to {aside.name}; the rows in them are generated again."] = None


def _check_same(unit: Unit, index: LogIndex, state: RunState) -> None:
    """Check that the records were made with the settings of `state`, by the hash that each of them knows: the file with
    the settings is gone. Raises DataError."""
    if index.settings == {state.digest}:
        return
    if not index.settings - {""}:
        raise DataError(
            f"{unit.paths.log} was written by another program or version.",
            hint="Delete it, or use another output folder.",
        )
    raise changed_settings(unit, [f"unknown ({unit.paths.state.name} is lost)"])


def _take_back(unit: Unit, before: RunState | None, rows: int, settings: str) -> None:
    """Turn a whole file without its marker, or one to be graded again, back into a log: only its verdicts are made
    anew, and judgements that were refused."""
    paths = unit.paths
    finished_rows = count_lines(paths.output)
    if finished_rows != rows:
        raise DataError(
            f"{paths.output} has {finished_rows} rows but the input has {rows}, and no record explains the difference.",
            hint="Delete it, use another output folder, or start it over with --rerun_done.",
        )
    grade_fields = before.grade_fields if before is not None else ()
    drop = frozenset(grade_fields)
    lacking = REFUSED_FIELD if unit.config.judges else None
    restore_log(paths.output, paths.log, unit.config.async_position_key, drop, lacking, settings=settings)
    paths.done.unlink(missing_ok=True)


def _start_over(unit: Unit) -> None:
    """Remove logs and markers, in this order; the old file stays until the new one replaces it."""
    unit.paths.remove_logs()
    for path in (unit.paths.done, done_path(unit.merged)):
        path.unlink(missing_ok=True)


def _input_rows(unit: Unit, state: RunState | None) -> tuple[Input, range]:
    config = unit.config
    if not config.input_file:
        raise ConfigError("++input_file is not set.")
    path = Path(config.input_file)
    stat = path.stat() if path.is_file() else None
    distinct = None
    if state is not None and state.distinct_rows:
        distinct = state.settings["input_file"], state.distinct_rows
    folder = Path(config.output_file).parent if config.output_file else None
    signature = (stat.st_mtime_ns, stat.st_size) if stat else None
    source = _scan_input(path, signature, distinct, folder)
    return source, chunk_bounds(source.rows, config.num_chunks, config.chunk_id, config.max_samples)


@functools.lru_cache(maxsize=64)
def _scan_input(path: Path, version: object, distinct: tuple[str, int] | None, folder: Path | None) -> Input:
    return read_input(path, folder, distinct)


def _checked_solver(unit: Unit, builder: RunBuilder, prompt: Prompt, source: Input, rows: range) -> Solver:
    """Return the solver after it has rendered the first row and the model accepts its settings. Raises as
    `prepare_unit`."""
    builder.check_model(unit.config)
    solver = builder.solver(unit.config, prompt)
    if isinstance(solver, NeedsCheck):
        solver.check()
    _first_request(solver, source, rows)
    return solver


def _rows_of_all_chunks(unit: Unit, source: Input) -> int:
    config = unit.config
    if config.max_samples < 0:
        return source.rows
    chunks = config.num_chunks or 1
    size, larger = divmod(source.rows, chunks)
    return larger * min(size + 1, config.max_samples) + (chunks - larger) * min(size, config.max_samples)


def _first_request(solver: Solver, source: Input, rows: range) -> Request | None:
    for sample in source.samples(rows):
        try:
            return solver.request(sample)
        except DataError as error:
            raise DataError(source.with_location(sample, error.message), hint=error.hint) from error
    return None
