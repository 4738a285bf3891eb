# SPDX-License-Identifier: Apache-2.0
"""Benchmarks → units → records → tables and metrics.json: what `ns eval` and everything that evaluates does."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from newskills._version import __version__
from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError, NewskillsError, UnknownNameError
from newskills.base.records import Report
from newskills.base.store import write_json
from newskills.base.tables import WIDTH, output_width, wrap_text
from newskills.benchmarks import get_group
from newskills.benchmarks.data import read_provenance
from newskills.config.layers import Layer
from newskills.prompts.official.table import FOLDER as OFFICIAL
from newskills.prompts.official.table import NEWSKILLS, worded_otherwise
from newskills.run.engine.build import RunBuilder, grader_id
from newskills.run.engine.early_stop import score_metric
from newskills.run.engine.execute import SIGNAL_EXIT_BASE, execute
from newskills.run.hosting.roles import HostedServers, at_servers, check_units, host_servers
from newskills.run.judging.generation import (
    ANSWERS_FOLDER,
    LOGS_FOLDER,
    UNIT_PREFIX,
    JudgeSettings,
    check_judges,
    judge_answers,
    judge_units,
)
from newskills.run.planning.config import GenerationConfig
from newskills.run.planning.plan import RESULTS_FOLDER, BenchmarkRun, PlannedUnit, WorkPieces, benchmark_units
from newskills.run.planning.spec import RunResult, RunSpec, Unit
from newskills.run.planning.until import UNTIL_FILE, StopPlan, UntilRule
from newskills.run.reporting.environments import say_environment_figures
from newskills.run.reporting.groups import GroupFor
from newskills.run.reporting.results import SEEDED_NAME, SEEDLESS_NAMES
from newskills.run.reporting.summarize import (
    BENCHMARK_FILE,
    MetricFor,
    SummaryOptions,
    lost_share,
    own_prompts,
    summarize,
)
from newskills.run.reporting.tables import render_tables

ENDED_STATES = ("done", "stopped_early")
"""What a unit that wants no more rows is."""


class EvaluationSpec(Struct, frozen=True, kw_only=True):
    """What to evaluate, and how.

    layers       the user's options for every benchmark; they win over the benchmarks' own
    judges       benchmark → how its answers are judged; the answers of others count as they are graded
    until        benchmark → when it has enough answers, from `stop_plans`; others are asked to the end
    accept_lost  percent of samples that may be unscored before the evaluation counts as failed
    """

    runs: Sequence[BenchmarkRun]
    output_dir: Path
    layers: Sequence[Layer]
    starting_seed: int = 0
    num_chunks: int | None = None
    chunk_ids: tuple[int, ...] = ()
    hosting: HostedServers | None = None
    judges: Mapping[str, JudgeSettings] = {}
    until: Mapping[str, StopPlan] = {}
    rerun_done: bool = False
    sequential: bool = False
    summarize: bool = True
    metric_type: str | None = None
    metrics_kwargs: dict[str, Any] = {}
    accept_lost: float = 1.0
    resume_with: str = ""
    log_dir: str = ""


class EvaluationOutcome(Struct, kw_only=True):
    """What came of an evaluation; `exit_code` is 0 only where all work is done and the numbers can be trusted."""

    result: RunResult
    reports: list[Report] = []
    exit_code: int = 0
    message: str = ""


class EvaluationPlan(Struct, frozen=True, kw_only=True):
    """An evaluation with its units of work, resolved: those of the answers, and those of the judges."""

    spec: EvaluationSpec
    answers: Sequence[PlannedUnit]
    judgements: Sequence[PlannedUnit]

    @property
    def units(self) -> list[PlannedUnit]:
        """All of them, those of judges last."""
        return [*self.answers, *self.judgements]


def plan_evaluation(spec: EvaluationSpec) -> EvaluationPlan:
    """Plan the evaluation of `spec`. Raises ConfigError, UnknownNameError."""
    return EvaluationPlan(spec=spec, answers=_plan_answers(spec), judgements=_plan_judgements(spec))


def _plan_answers(spec: EvaluationSpec) -> list[PlannedUnit]:
    planned: list[PlannedUnit] = []
    for run in spec.runs:
        chunks = spec.num_chunks or run.benchmark.chunks or None
        pieces = WorkPieces(seeds=_run_seeds(spec, run), num_chunks=chunks, chunk_ids=spec.chunk_ids)
        folder_name = ANSWERS_FOLDER if run.name in spec.judges else RESULTS_FOLDER
        results = spec.output_dir / folder_name
        planned += benchmark_units(run, results=results, pieces=pieces, layers=spec.layers)
    return planned


def _plan_judgements(spec: EvaluationSpec) -> list[PlannedUnit]:
    """Plan the judgements of `spec`. A part of the chunks is not judged: their answers are no whole file."""
    planned: list[PlannedUnit] = []
    for run in spec.runs:
        if run.name in spec.judges and not spec.chunk_ids:
            how = spec.judges[run.name]
            planned += judge_units(
                run.name,
                how,
                output_dir=spec.output_dir,
                seeds=_run_seeds(spec, run),
                rows=run.input_file.parent,
            )
    return planned


def _run_seeds(spec: EvaluationSpec, run: BenchmarkRun) -> tuple[int, ...] | None:
    return tuple(range(spec.starting_seed, spec.starting_seed + run.samples)) or None


def evaluate(plan: EvaluationPlan, *, say: PrintLine) -> EvaluationOutcome:
    """Run everything, then summarise; `say` gets the tables.

    Raises NewskillsError for what can be refused before the first request; later trouble is in the result.
    """
    spec = plan.spec
    check_kinds([piece.unit for piece in plan.units])
    check_units(plan.answers, spec.hosting)
    check_judges(plan.judgements, rerun_done=spec.rerun_done)
    with host_servers(spec.hosting, plan.answers, rerun_done=spec.rerun_done) as servers:
        units = tuple(piece.unit for piece in at_servers(plan.answers, servers))
        common = RunSpec(
            units=units,
            output_dir=str(spec.output_dir),
            rerun_done=spec.rerun_done,
            resume_with=spec.resume_with,
            log_dir=spec.log_dir,
            sequential=spec.sequential,
            beside=describe_benchmarks(spec.runs, units),
        )
        result = execute(common, until=spec.until)
    _write_down(spec, units, result)
    if plan.judgements and result.exit_code <= SIGNAL_EXIT_BASE:
        result = _with_judgements(plan, common, result)
    evaluation = EvaluationOutcome(result=result, exit_code=result.exit_code, message=result.message)
    if spec.summarize and not spec.chunk_ids and (done := _finished_benchmarks(spec, result)):
        _report_evaluation(spec, done, evaluation, say)
        say_environment_figures([unit for unit in units if unit.name in _finished_names(result)], say)
    return evaluation


def stop_plans(
    spec: EvaluationSpec, rule: UntilRule, baselines: Mapping[str, Mapping[str, float]]
) -> dict[str, StopPlan]:
    """Return the rule for each benchmark; `baselines`: of another run, benchmark → problem → score. Raises
    ConfigError."""
    plans = {}
    for run in spec.runs:
        if run.name in spec.judges or not run.benchmark.grader:
            raise ConfigError(
                f"--until needs each verdict while the run goes, but answers of {run.name} are judged afterwards.",
                hint="Leave out --until, or that benchmark.",
            )
        if spec.num_chunks or spec.chunk_ids or run.benchmark.chunks:
            raise ConfigError(f"--until asks problems in random order, so {run.name} cannot be cut into chunks.")
        name, options = metric_of([run])(run.name)
        if spec.metric_type is not None:
            name, options = spec.metric_type, {}
        plans[run.name] = plan = StopPlan(
            rule=rule,
            metric=name,
            metric_options={**options, **spec.metrics_kwargs},
            baseline=baselines.get(run.name, {}),
        )
        score_metric(plan)
    return plans


def _write_down(spec: EvaluationSpec, units: Sequence[Unit], result: RunResult) -> None:
    """Write where a rule stopped each benchmark; an earlier rule's file is removed once all rows are there."""
    for run in spec.runs:
        own = {unit.status for unit in result.units if unit.name == run.name}
        folder = next((unit.merged.parent for unit in units if unit.name == run.name), None)
        if folder is None or not own <= {"done", "stopped_early"}:
            continue
        if run.name in result.until:
            write_json(folder / UNTIL_FILE, result.until[run.name])
        elif run.name not in spec.until:
            (folder / UNTIL_FILE).unlink(missing_ok=True)


def _finished_benchmarks(spec: EvaluationSpec, result: RunResult) -> list[BenchmarkRun]:
    """Return the benchmarks all of whose files are done, those of their judges included; none where a signal ended
    it."""
    if result.exit_code > SIGNAL_EXIT_BASE:
        return []
    finished = _finished_names(result)
    return [
        run
        for run in spec.runs
        if run.name in finished and (run.name not in spec.judges or f"{UNIT_PREFIX}{run.name}" in finished)
    ]


def _finished_names(result: RunResult) -> set[str]:
    """Return the names of units all of which are done, or stopped because enough is known."""
    return {unit.name for unit in result.units} - {
        unit.name for unit in result.units if unit.status not in ENDED_STATES
    }


def _with_judgements(plan: EvaluationPlan, common: RunSpec, answers: RunResult) -> RunResult:
    """Run the judges over benchmarks whose answers are complete, and add their results to those of `answers`."""
    spec = plan.spec
    logs = str(Path(spec.log_dir) / LOGS_FOLDER) if spec.log_dir else ""
    complete = _finished_names(answers)
    judgements = [piece for piece in plan.judgements if piece.unit.name.removeprefix(UNIT_PREFIX) in complete]
    if not judgements:
        return answers
    beside = describe_judges(spec.runs, common.units, [piece.unit for piece in judgements])
    own = replace(common, units=(), beside=beside, log_dir=logs, output_dir=logs)
    judged = judge_answers({name: how for name, how in spec.judges.items() if name in complete}, judgements, own)
    judged.units[:0] = answers.units
    judged.retries += answers.retries
    judged.exit_code = judged.exit_code or answers.exit_code
    judged.message = " ".join(message for message in (answers.message, judged.message) if message)
    return judged


def check_kinds(units: Sequence[Unit]) -> None:
    """Refuse to put seeded and seedless outputs into one folder. Raises DataError."""
    for unit in units:
        folder = unit.merged.parent
        if folder.is_dir():
            names = sorted(path.name.removesuffix("-async") for path in folder.iterdir())
        else:
            names = []
        others = [
            name
            for name in names
            if (name in SEEDLESS_NAMES if unit.seed is not None else SEEDED_NAME.fullmatch(name))
        ]
        if others:
            raise DataError(
                f"{folder} has {others[0]}, which is another kind of run than {unit.merged.name}: one has "
                "seeds, the other has not, so they cannot be summarised together.",
                hint="Use another output folder, or move that file away.",
            )


def describe_benchmarks(runs: Sequence[BenchmarkRun], units: Sequence[Unit]) -> dict[str, Any]:
    """Return `benchmark.json` of each benchmark that has units, as path → content."""
    builder = RunBuilder(os.environ)
    files = {}
    for run in runs:
        unit = next((unit for unit in units if unit.name == run.name), None)
        if unit is None:
            continue
        prompt = builder.prompt(_as_here(unit.config, run))
        if run.benchmark.metric_config:
            metric_config = {"metric_config": run.benchmark.metric_config}
        else:
            metric_config = {}
        files[str(unit.merged.parent / BENCHMARK_FILE)] = {
            "benchmark": run.benchmark.name,
            "group_score": run.group is not None and run.group.score is not None,
            "version": run.benchmark.version,
            "split": str(run.split),
            "prompt": str(prompt.name),
            "prompt_hash": prompt.hash,
            "prompt_text": prompt.template,
            "prompt_source": prompt.source,
            "grader": grader_id(unit.config),
            "metric": run.benchmark.metric,
            **metric_config,
            "newskills": __version__,
            "input_file": str(run.input_file),
            "data": read_provenance(run.input_file),
        }
    return files


def _as_here(config: GenerationConfig, run: BenchmarkRun) -> GenerationConfig:
    """Return `config`, which may be that of a job elsewhere, with the official prompts of this machine."""
    if not config.official_prompts or Path(config.official_prompts).is_dir():
        return config
    return replace(config, official_prompts=str(run.input_file.parent / OFFICIAL))


def describe_judges(
    runs: Sequence[BenchmarkRun], answers: Sequence[Unit], judges: Sequence[Unit]
) -> dict[str, Any]:
    """Return `benchmark.json` for the judges' outputs, as path → content: the answers' description, and who judged
    them."""
    builder = RunBuilder(os.environ)
    files = {}
    for run in runs:
        unit = next((unit for unit in judges if unit.name == f"{UNIT_PREFIX}{run.name}"), None)
        if unit is None:
            continue
        prompt = builder.prompt(_as_here(unit.config, run))
        (content,) = describe_benchmarks([run], answers).values()
        content["judge"] = {
            "model": unit.config.server.model,
            "prompt": str(prompt.name),
            "prompt_hash": prompt.hash,
            "prompt_source": prompt.source,
            "grader": grader_id(unit.config),
        }
        files[str(unit.merged.parent / BENCHMARK_FILE)] = content
    return files


def _report_evaluation(
    spec: EvaluationSpec, done: Sequence[BenchmarkRun], evaluation: EvaluationOutcome, say: PrintLine
) -> None:
    options = SummaryOptions(
        benchmarks=tuple(run.name for run in done),
        metric_type=spec.metric_type,
        metrics_kwargs=spec.metrics_kwargs,
        accept_lost=spec.accept_lost / 100,
        group_for=group_of(spec.runs),
    )
    summary = summarize(spec.output_dir, metric_of(spec.runs), options)
    for note in summary.notes:
        say(f"note: {note}")
    if left := [run.name for run in spec.runs if run not in done]:
        say(f"note: not in the table, because it is not finished: {', '.join(left)}.")
        evaluation.message = f"Not finished: {', '.join(left)}. {evaluation.message}"
    evaluation.reports = summary.reports
    say(render_tables(summary.reports, spec.accept_lost / 100, output_width() or WIDTH))
    if note := _own_wording(spec, done):
        say("\n".join(wrap_text(note, output_width())))
    for name, record in evaluation.result.until.items():
        go_on = ""
        if record.partial:
            go_on = " Run the command without --until to ask the others."
        say(f"{name}: {record.sentence()}{go_on}")
    say(f"To see the samples, and why each was graded so: ns view {shlex.quote(str(spec.output_dir))}")
    if not evaluation.exit_code:
        evaluation.message = lost_too_much(summary.reports, spec.accept_lost)
    if summary.failed:
        evaluation.message = f"{evaluation.message} {summary.failures}".strip()
    if evaluation.message and not evaluation.exit_code:
        evaluation.exit_code = 1


def _own_wording(spec: EvaluationSpec, done: Sequence[BenchmarkRun]) -> str:
    """Return the sentence about benchmarks with prompts of our own in place of published ones; empty for none."""
    if any(layer.values.get("prompt_source") == NEWSKILLS for layer in spec.layers):
        return ""
    names = []
    for run in done:
        if run.benchmark.defaults.get("prompt_source") == NEWSKILLS:
            continue
        own = own_prompts(spec.output_dir.joinpath(RESULTS_FOLDER, *run.name.split(".")))
        if any(map(worded_otherwise, own)):
            names.append(run.name)
    if not names:
        return ""
    return (
        f"prompt: newskills for {', '.join(names)}: an official wording is published, but is not in the data folder. "
        "ns prepare_data downloads it; --prompt_source=newskills says that ours is meant."
    )


def lost_too_much(reports: Sequence[Report], accept_lost: float) -> str:
    """Return the sentence where the instrument lost more than `accept_lost` percent of some benchmark; else empty."""
    lost = lost_share(reports) * 100
    if lost <= accept_lost:
        return ""
    remedy = "--rerun_done runs those files again from the start"
    if any(report.ledger.causes.get("judge", 0) for report in reports):
        remedy = (
            "The same command asks again where the judge gave no reply; "
            "--extra_judge_args='++skip_filled=false' judges all answers again"
        )
    return (
        f"{lost:.1f} % of the samples are unscored because requests, judges or graders failed (more than the "
        f"accepted {accept_lost:g} %), so no headline score is shown. {remedy}; --accept_lost PERCENT accepts "
        "them."
    )


def require_trust(reports: Sequence[Report], accept_lost: float) -> None:
    """Raise NewskillsError where `lost_too_much` has something to say."""
    if message := lost_too_much(reports, accept_lost):
        raise NewskillsError(message)


def group_of(runs: Sequence[BenchmarkRun]) -> GroupFor:
    """Return the lookup of groups by name: those of the runs first, then the built-in groups."""
    groups = {run.group.name: run.group for run in runs if run.group}
    return lambda name: groups.get(name) or get_group(name)


def metric_of(runs: Sequence[BenchmarkRun]) -> MetricFor:
    """Return the lookup from the name of a results folder to (metric, its arguments)."""
    by_name = {run.name: run.benchmark for run in runs}

    def metric_for(name: str) -> tuple[str, dict[str, Any]]:
        if name not in by_name:
            raise UnknownNameError("benchmark", name, by_name)
        return by_name[name].metric, by_name[name].metric_config

    return metric_for
