# SPDX-License-Identifier: Apache-2.0
"""The few answers, and judgements of them, that `ns eval --plan_cost` asks for where there are none.

The evaluation goes on from both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.store import encode_line, read_rows
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import WorkOptions
from newskills.pipelines.units.sandbox import check_sandbox
from newskills.run.evaluate import EvaluationPlan, EvaluationSpec, describe_judges, evaluate, plan_evaluation
from newskills.run.judging.generation import LOGS_FOLDER, UNIT_PREFIX, judge_answers
from newskills.run.planning.plan import BenchmarkRun, PlannedUnit
from newskills.run.planning.spec import RunSpec, Unit
from newskills.run.planning.until import StopPlan, parse_until, random_order
from newskills.run.records.chunks import count_lines
from newskills.run.records.log import restore_log
from newskills.run.records.state import load_state

PROBES = 20
"""Random problems of each benchmark that are asked where nothing has been."""
PROBE_INPUT = "plan-cost"
"""Folder, below the output folder, of the answers that judges are probed with."""


def probe_answers(plan: EvaluationPlan, runs: Sequence[BenchmarkRun], options: WorkOptions) -> None:
    """Ask one answer to each of a few problems of `runs`, at once and not in batches. Raises NewskillsError."""
    spec = plan.spec
    if chunked := [run.name for run in runs if spec.num_chunks or spec.chunk_ids or run.benchmark.chunks]:
        raise ConfigError(
            f"{', '.join(chunked)}: there are no answers yet, and random problems of a file that is cut into chunks "
            "cannot be asked.",
            hint="Start the evaluation, stop it after some answers (Ctrl-C), and plan again: they are kept.",
        )
    probe = plan_evaluation(
        replace(
            spec,
            runs=[replace(run, samples=min(run.samples, 1)) for run in runs],
            until={run.name: _stop_plan(plan, run) for run in runs},
            summarize=False,
        )
    )
    probe = replace(probe, answers=[_without_batches(piece) for piece in probe.answers], judgements=[])
    check_sandbox(options, probe.answers)
    names = ", ".join(run.name for run in runs)
    print_note(f"at most {PROBES} problems of {names} are asked, in {spec.output_dir}")
    outcome = evaluate(probe, say=print_note)
    if outcome.exit_code:
        raise NewskillsError(outcome.message)


def probe_judges(plan: EvaluationPlan, names: Sequence[str]) -> None:
    """Let the judges of these benchmarks read a few answers of one file each. Raises NewskillsError."""
    spec = plan.spec
    firsts = {
        name: next(piece for piece in plan.judgements if piece.unit.name == f"{UNIT_PREFIX}{name}")
        for name in names
    }
    pieces = [_without_batches(_with_few_rows(piece, spec)) for piece in firsts.values()]
    print_note(f"at most {PROBES} answers to {', '.join(names)} are judged")
    answers = [piece.unit for piece in plan.answers]
    judges = {name: spec.judges[name] for name in names}
    beside = describe_judges(spec.runs, answers, [piece.unit for piece in pieces])
    logs = str(Path(spec.log_dir) / LOGS_FOLDER)
    common = RunSpec(units=(), output_dir=logs, log_dir=logs, resume_with=spec.resume_with, beside=beside)
    result = judge_answers(judges, pieces, common, complete=False)
    if result.exit_code:
        raise NewskillsError(result.message)
    for piece in pieces:
        _leave_unfinished(piece.unit)


def _stop_plan(plan: EvaluationPlan, run: BenchmarkRun) -> StopPlan:
    """Return a rule that ends the probe; all problems are asked where there are fewer than it would ask."""
    config = next(piece.unit.config for piece in plan.answers if piece.unit.name == run.name)
    rows = count_lines(run.input_file)
    if config.max_samples > 0:
        rows = min(rows, config.max_samples)
    return StopPlan(rule=parse_until(f"rows={max(1, min(PROBES, rows))}"), metric="generic")


def _without_batches(piece: PlannedUnit) -> PlannedUnit:
    config = piece.unit.config
    return replace(
        piece, unit=replace(piece.unit, config=replace(config, server=replace(config.server, batch_api=False)))
    )


def _with_few_rows(piece: PlannedUnit, spec: EvaluationSpec) -> PlannedUnit:
    """Return the judging unit with a few random rows of its input, in a file of their own."""
    answers = list(read_rows(Path(piece.unit.config.input_file)))
    chosen = sorted(random_order(len(answers))[:PROBES])
    path = spec.output_dir / PROBE_INPUT / f"{piece.unit.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(encode_line(answers[position]) for position in chosen))
    return replace(piece, unit=replace(piece.unit, config=replace(piece.unit.config, input_file=str(path))))


def _leave_unfinished(unit: Unit) -> None:
    """Turn a file of a few judgements back into a log, from which the judge of all answers goes on: a finished file
    would pass for all of them."""
    paths, state = unit.paths, load_state(unit.paths.state)
    if state is None or not paths.output.exists():
        return
    drop = frozenset(state.grade_fields)
    restore_log(paths.output, paths.log, unit.config.async_position_key, drop, settings=state.digest)
    state.status, state.done = "stopped_early", state.rows
    state.save(paths.state)
    paths.done.unlink(missing_ok=True)
    paths.output.unlink()
