# SPDX-License-Identifier: Apache-2.0
"""Does what a RunSpec says, in this process; `python -m newskills.run DIR` comes here too."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from newskills.base import aio
from newskills.base.errors import AuthError, BudgetError, DataError, LockedError, NewskillsError, StorageError
from newskills.base.limits import allow_open_files
from newskills.base.records import Request
from newskills.base.replacing import remove_abandoned
from newskills.base.store import write_json
from newskills.models.errors import ModelNotFoundError
from newskills.run.engine.batches.ledger import BATCHES_FOLDER
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.early_stop import EarlyStop
from newskills.run.engine.loop import Engine
from newskills.run.engine.preflight import PreparedUnit, first_request, prepare_unit, request_window
from newskills.run.engine.progress import Progress
from newskills.run.engine.supervision import run_supervision
from newskills.run.engine.unit import UnitRun
from newskills.run.planning.queue import ChunkQueue
from newskills.run.planning.spec import RUN_FILE, RunResult, RunSpec, Status, Unit, UnitResult, mask_addresses
from newskills.run.planning.until import StopPlan
from newskills.run.records.journal import Journal

if TYPE_CHECKING:
    from rich.console import Console


K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
SIGNAL_EXIT_BASE = 128
"""Exit codes above are those of signals."""


def claim_work(keys: Iterable[K], tried: set[K], take: Callable[[K], T]) -> Iterator[tuple[K, T]]:
    """Yield each key of work shared by several processes that is not in `tried` and that `take` locks, with what
    it took.

    `take` raises LockedError for what another process has; a later pass may get it.
    """
    for key in keys:
        if key in tried:
            continue
        try:
            taken = take(key)
        except LockedError:
            continue
        tried.add(key)
        yield key, taken


class SharedUnits(NamedTuple):
    """Units of a queue that several processes work on. `tried`: places that are not for this process any more;
    `offered`: places of units of one name, as they are worth trying."""

    queue: ChunkQueue
    tried: set[int]
    offered: Iterable[int]

    def take_units(
        self, spec: RunSpec, builder: RunBuilder, stack: ExitStack, into: list[PreparedUnit | UnitResult]
    ) -> Iterator[PreparedUnit]:
        """Yield the next units that nobody has and that have work to do. All that are finished or taken go `into` the
        run. Raises as `prepare`."""
        work = claim_work(
            self.offered, self.tried, lambda place: prepare_unit(self.queue[place], spec, builder, stack)
        )
        for _, prepared in work:
            into.append(prepared)
            if isinstance(prepared, PreparedUnit):
                yield prepared


def execute(
    spec: RunSpec,
    *,
    console: Console | None = None,
    environ: Mapping[str, str] | None = None,
    begin: Callable[[], object] | None = None,
    until: Mapping[str, StopPlan] = MappingProxyType({}),
    earlier: Sequence[UnitResult] = (),
    more: SharedUnits | None = None,
) -> RunResult:
    """Generate, grade and write every unit; finished units cost nothing.

    `begin` is called once nothing can be refused any more and there is work to do. `until`: name of units → when they
    have enough answers; they are then `stopped_early`, and go on without it. `earlier`: units of the same run, for its
    budget. `more`: units to take once the rows of these are asked, those that nobody else has.

    Raises NewskillsError for what can be refused before the first request (input, settings, locks, prompts).
    Later trouble is in the result: what is finished is on disk, and the same spec goes on from there.
    """
    from rich.console import Console

    console = console or run_supervision().console or Console(stderr=True)
    for path in spec.needs:
        if not Path(path).exists():
            raise DataError(f"There is no {path}: the folder of the run is incomplete.")
    if spec.sequential and len(spec.units) > 1 and not until:
        return _one_by_one(spec, console=console, environ=environ, begin=begin)
    allow_open_files()
    window = request_window(len(spec.units))
    folder = Path(spec.output_dir or spec.units[0].merged.parent) / BATCHES_FOLDER
    environment = os.environ if environ is None else environ
    builder = RunBuilder(environment, folder)
    _remove_leftovers(spec)
    with ExitStack() as stack, closing(builder):
        units = [prepare_unit(unit, spec, builder, stack) for unit in spec.units]
        work = [unit for unit in units if isinstance(unit, PreparedUnit)]
        if not work:
            return RunResult(units=[unit for unit in units if isinstance(unit, UnitResult)])
        _check_promises(until, units)
        quiet = work[0].run.config.log_level in ("warning", "error")
        _save_spec(spec)
        for path, content in spec.beside.items():
            write_json(Path(path), content)
        if begin is not None:
            begin()
        journal = Journal(spec.log_dir)
        journal.begin(spec, [unit.run.unit.label for unit in work])
        with Progress(console, _work_title(work), quiet=quiet, journal=journal) as progress:
            for note in builder.notes:
                progress.say(note)
            if kept := sum(unit.run.kept for unit in work):
                rows = sum(unit.run.index.rows for unit in work)
                progress.say(f"{kept:,} of {rows:,} rows are already done; the run resumes from there.")
            stops = _early_stops(until, units, progress)
            finished = [*earlier, *(unit for unit in units if isinstance(unit, UnitResult))]
            supply = None if more is None else more.take_units(spec, builder, stack, units)
            engine = Engine(work, builder, progress, stops, finished, supply, window)
            aio.run(engine.run)
        result = _run_result(spec, engine, units, journal)
    for name, stop in stops.items():
        if all(unit.status == "done" for unit in result.units if unit.name == name):
            stop.count_all()
        result.until[name] = stop.record()
    return result


def _early_stops(
    until: Mapping[str, StopPlan], units: Sequence[PreparedUnit | UnitResult], progress: Progress
) -> dict[str, EarlyStop]:
    """Return what watches each benchmark. Those with a seed that is finished are left alone."""
    stops = {}
    for name, plan in until.items():
        own, work = _of_benchmark(name, units)
        if len(work) == len(own):
            rows = work[0].run.index.rows
            stops[name] = EarlyStop(plan, files=len(work), rows=rows)
            if doubt := plan.rule.doubt(rows, len(work)):
                progress.say(f"{name}: --until '{plan.rule.text}' {doubt}")
        elif work:
            progress.say(
                f"{name}: some seeds are finished already, so --until does not apply: all rows are asked."
            )
    return stops


def _check_promises(until: Mapping[str, StopPlan], units: Sequence[PreparedUnit | UnitResult]) -> None:
    """Refuse a number of problems that cannot be kept, because other seeds have all of them. Raises DataError."""
    for name, plan in until.items():
        own, work = _of_benchmark(name, units)
        if work and len(work) < len(own) and (plan.rule.rows or math.inf) < work[0].run.index.rows:
            raise DataError(
                f"{name}: {len(own) - len(work)} of {len(own)} seeds are finished, with all "
                f"{work[0].run.index.rows:,} problems; --until '{plan.rule.text}' would leave the others shorter.",
                hint="Use another output folder, or leave out --until.",
            )


def _of_benchmark(
    name: str, units: Sequence[PreparedUnit | UnitResult]
) -> tuple[list[PreparedUnit | UnitResult], list[PreparedUnit]]:
    """Return (units of this benchmark, those of them that have work left)."""
    own = [unit for unit in units if (unit.name if isinstance(unit, UnitResult) else unit.run.unit.name) == name]
    return own, [unit for unit in own if isinstance(unit, PreparedUnit)]


def _one_by_one(
    spec: RunSpec,
    *,
    console: Console,
    environ: Mapping[str, str] | None,
    begin: Callable[[], object] | None,
) -> RunResult:
    """Run each unit by itself. A failure does not keep the next from its turn, a signal does; the last failure
    counts."""
    total = RunResult(units=[])
    for unit in spec.units:
        alone = msgspec.structs.replace(spec, units=(unit,), sequential=False)
        last = unit is spec.units[-1]
        try:
            begin_last = begin if last else None
            done = execute(alone, console=console, environ=environ, begin=begin_last, earlier=tuple(total.units))
        except NewskillsError as error:
            if not total.units:
                raise
            total.exit_code, total.message = error.exit_code, f"{unit.label}: {error}"
            continue
        total.units += done.units
        total.retries += done.retries
        if done.exit_code:
            total.exit_code, total.message = done.exit_code, done.message
        if done.exit_code > SIGNAL_EXIT_BASE or done.exit_code == BudgetError.exit_code:
            break
    return total


def preview_request(unit: Unit, *, environ: Mapping[str, str] | None = None) -> Request:
    """Return the first request of a unit, as it would be sent (dry run). Raises NewskillsError."""
    environment = os.environ if environ is None else environ
    with closing(RunBuilder(environment)) as builder:
        return first_request(unit, builder)


def _remove_leftovers(spec: RunSpec) -> None:
    """Remove what killed processes have left of files that they were writing."""
    names: dict[Path, set[str]] = {Path(spec.output_dir): {RUN_FILE}} if spec.output_dir else {}
    for unit in (unit for unit in spec.units if unit.config.output_file):
        for path in (unit.merged, *unit.paths.replaced):
            names.setdefault(path.parent, set()).add(path.name)
    for folder, running in names.items():
        remove_abandoned(folder, running)


def _save_spec(spec: RunSpec) -> None:
    """Save `run.json`, so that `python -m newskills.run DIR` can go on. Of two runs in one folder, the last
    wins."""
    if spec.output_dir:
        with suppress(StorageError):  # what matters meets the same trouble and says so
            here = msgspec.structs.replace(spec, working_dir=spec.working_dir or str(Path.cwd()))
            here.save(Path(spec.output_dir))


def check_unit(unit: Unit, *, rendered: bool = True, environ: Mapping[str, str] | None = None) -> None:
    """Check what can be refused without an endpoint: key, settings of the backend, and (`rendered`) the first
    prompt."""
    environment = os.environ if environ is None else environ
    with closing(RunBuilder(environment)) as builder:
        builder.check_model(unit.config)
        if rendered:
            first_request(unit, builder)


def _work_title(work: Sequence[PreparedUnit]) -> str:
    if len(work) == 1:
        return work[0].run.unit.label
    return f"{len(work)} runs"


def _run_result(
    spec: RunSpec, engine: Engine, units: Sequence[PreparedUnit | UnitResult], journal: Journal
) -> RunResult:
    runs = [unit.run for unit in units if isinstance(unit, PreparedUnit)]
    exit_code, why = _run_verdict(engine, runs)
    why = mask_addresses(why)
    for run in runs:
        if run.status is None:
            status: Status = "stopped"
            if engine.signal:
                status = "interrupted"
            elif run.complete or run.given_up:
                status = "failed"
            with suppress(*([StorageError] if engine.fatal else [])):  # a full disk takes no exit record either
                run.end(status, exit_code=exit_code, error=why)
    results = [unit.run.result() if isinstance(unit, PreparedUnit) else unit for unit in units]
    journal.end(results, exit_code, engine.retries, why)
    message = ""
    if exit_code:
        message = f"{why} {_next_step_sentence(engine, spec.resume_with)}"
    return RunResult(units=results, exit_code=exit_code, message=message, retries=engine.retries)


def _next_step_sentence(engine: Engine, command: str) -> str:
    """Return the sentence that says what to type next. Where the command itself is wrong, it is not the same one."""
    if isinstance(engine.fatal, ModelNotFoundError):
        return "Run the command again with a model that this server has."
    if engine.fatal is None and engine.used_up is not None:
        if command:
            return f"Resume with a larger budget: {command}"
        return "Run it with a larger budget to resume."
    if isinstance(engine.fatal, AuthError):
        return f"Set a key that the server accepts, then resume with: {command or 'the same command.'}"
    if command:
        return f"Resume with: {command}"
    return "Run the same command to resume from here."


def _run_verdict(engine: Engine, runs: Sequence[UnitRun]) -> tuple[int, str]:
    """Return (exit code, what went wrong)."""
    if engine.fatal is not None:
        return engine.fatal.exit_code, str(engine.fatal)
    if all(run.status in ("done", "stopped_early") for run in runs):
        return 0, ""
    if engine.signal is not None:
        return 128 + engine.signal, f"Stopped by {engine.signal.name}; finished rows are saved."
    if engine.used_up is not None:
        return engine.used_up.exit_code, f"{engine.used_up} {_rows_done(runs)}"
    return 1, " ".join(_failure_text(run) for run in runs if run.failures or run.given_up)


def _rows_done(runs: Sequence[UnitRun]) -> str:
    return f"{sum(run.index.done for run in runs):,} of {sum(run.index.rows for run in runs):,} rows are done."


def _failure_text(run: UnitRun) -> str:
    if run.given_up:
        return f"{run.unit.label}: {run.given_up}"
    first = ""
    if run.first_failure:
        first = f"{run.first_failure.kind}: {run.first_failure.message}"
    causes = ", ".join(f"{cause} {n}" for cause, n in run.failure_causes.most_common())
    text = (
        f"{run.unit.label}: {run.failures} of {run.index.rows} rows got no answer ({causes}); the first: {first} See"
        f" {run.paths.failed}."
    )
    if run.unfit:
        text += f" {run.unfit} of them do not fit the prompt: fix them or the prompt, and use --rerun_done."
    if run.failures > run.unfit:
        text += " Another run retries them; ++server.enable_soft_fail=true records them as unscored."
    return text
