# SPDX-License-Identifier: Apache-2.0
"""`ns eval` as a pipeline: jobs that generate and grade, one summary per benchmark, and one of all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.plan import HardwareConfig, Script
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command, CommandGroup, JobDict
from newskills.launch.machines.shell import Shell
from newskills.launch.machines.ssh import shell_of
from newskills.launch.scripts.clients import SummarizeScript
from newskills.launch.scripts.script import Context
from newskills.pipelines.arguments import read_json
from newskills.pipelines.evaluation.judges import JudgePlan
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.evaluation.specification import SUMMARY, evaluation_spec_and_judges
from newskills.pipelines.models import choose_model
from newskills.pipelines.notices import print_note
from newskills.pipelines.pages import dry_run, show_explained
from newskills.pipelines.placement.cluster import ClusterPaths, hardware_of, paths_of
from newskills.pipelines.submission.groups import OWN_CONTAINER, main_container
from newskills.pipelines.submission.plan import Plan, job_name, unique_jobs
from newskills.pipelines.submission.plan_view import settings_of
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.units.checks import (
    check_addresses,
    check_inputs,
    check_prompts,
    fetch_weights,
    with_code,
    with_inputs,
)
from newskills.pipelines.units.jobs import UnitJobs, parts_of, unfinished_units
from newskills.pipelines.units.sandbox import check_sandbox
from newskills.run.evaluate import (
    EvaluationPlan,
    EvaluationSpec,
    describe_benchmarks,
    describe_judges,
    plan_evaluation,
)
from newskills.run.judging.generation import LOGS_FOLDER, UNIT_PREFIX, check_judges
from newskills.run.planning.plan import RESULTS_FOLDER, BenchmarkRun
from newskills.run.planning.spec import RunSpec, Unit

MAPS_VARIABLE = "NEMO_SKILLS_EXTRA_BENCHMARK_MAP"
METRICS = "metrics.json"
ALL_THERE = """\
for ((left = $1; left > 0; left--)); do
    shift
    [[ -e $1 ]] && continue
    echo "There is no $1: its job has not finished. The same ns command goes on from there." >&2
    missing=1
done
shift
[[ -z ${missing:-} ]] || exit 1
exec "$@"
"""
"""$1 files, then a command."""


class PlannedEvaluation(Struct, frozen=True, kw_only=True):
    """What one evaluation adds to a pipeline.

    last     jobs after all others of it; none where nothing is left to do
    outputs  files that they leave, as users see them
    shown    title → value, for `--dry_run`
    """

    last: Sequence[JobDict]
    outputs: Sequence[Path]
    shown: Mapping[str, Any]


def prepare(parsed: Parsed[EvalOptions], cluster: ClusterConfig) -> PreparedSubmission | None:
    """Resolve and check everything; return None where nothing is left to do. Raises NewskillsError."""
    options = parsed.options
    paths = paths_of(cluster, main_container(options), options)
    spec, judges = evaluation_spec_and_judges(parsed, paths)
    planned = check_plan(options, spec)
    if parsed.explain:
        show_explained(planned.units)
        return None
    if dry_run(options, planned.units):
        parsed = msgspec.structs.replace(parsed, options=msgspec.structs.replace(options, dry_run=True))
    plan = Plan()
    part = add_evaluation(parsed, planned, judges, paths, plan)
    if not plan.jobs:
        print_note(f"nothing to do: all results are already in {spec.output_dir}")
        return None
    return prepare_submission(options.expname or "eval", plan, cluster, parsed.options, part.shown)


def check_plan(options: EvalOptions, spec: EvaluationSpec) -> EvaluationPlan:
    """Plan the evaluation. Raises NewskillsError for what can be refused without a look at the cluster."""
    planned = plan_evaluation(spec)
    check_sandbox(options, planned.answers)
    check_judges(planned.judgements, rerun_done=spec.rerun_done)
    return planned


def add_evaluation(
    parsed: Parsed[EvalOptions],
    evaluation: EvaluationPlan,
    judges: Mapping[str, JudgePlan],
    paths: ClusterPaths,
    plan: Plan,
) -> PlannedEvaluation:
    """Add the jobs for what is left of `evaluation` to `plan`. Raises NewskillsError."""
    options, cluster, spec = parsed.options, paths.cluster, evaluation.spec
    judging = [piece.unit for piece in evaluation.judgements]
    shell = shell_of(cluster, os.environ)
    units = with_inputs([piece.unit for piece in evaluation.answers], paths, plan, shell)
    prompts_by_name = {f"{UNIT_PREFIX}{unit.name}": unit.config.official_prompts for unit in units}
    judging = [_with_prompts(unit, prompts_by_name[unit.name]) for unit in judging]
    left, unjudged = units, judging
    if not options.rerun_done:
        left, unjudged = unfinished_units(units, paths, shell), unfinished_units(judging, paths, shell)
    choice = choose_model(options, parsed.overrides, elsewhere=True)
    host = choice.host
    if left:
        check_inputs(left, paths, shell, shipped=list(plan.shipments))
        check_prompts(
            left, hosted=host is not None, paths=paths, shipments=plan.shipments, dry_run=options.dry_run
        )
        if not options.dry_run:
            fetch_weights(host, paths)
    shared = UnitJobs(
        options=options,
        paths=paths,
        spec=_run_spec(spec, options, describe_benchmarks(spec.runs, left)),
        host=host,
        more=choice.more,
        parts=parts_of(options, cluster),
        name="eval",
    )
    jobs: dict[Path, list[JobDict]] = {}
    if left:
        jobs = shared.add(with_code(left, paths), plan)
    if unjudged:
        beside = describe_judges(spec.runs, units, unjudged)
        theirs = _run_spec(spec, options, beside, logs=LOGS_FOLDER)
        jobs |= _add_judges(unjudged, judges, msgspec.structs.replace(shared, spec=theirs, makers=jobs), plan)
    counted = [unit for unit in units if unit.name not in judges] + judging
    last = unique_jobs([job for made in jobs.values() for job in made])
    if spec.summarize and not spec.chunk_ids:
        last = _add_summaries(parsed, spec, counted, jobs, plan, _ExistingFiles(paths, shell))
    shown: dict[str, Any] = {"units": f"{len(left)} to do of {len(units)}"}
    if judging:
        shown["judged"] = f"{len(unjudged)} to do of {len(judging)}, by {_judge_names(judging)}"
    shown |= {"output": str(spec.output_dir), **settings_of(evaluation.answers[0].resolved)}
    return PlannedEvaluation(last=last, outputs=_merged_outputs(counted), shown=shown)


def _with_prompts(unit: Unit, folder: str) -> Unit:
    """Return `unit` with the folder of official prompts as jobs see it."""
    config = msgspec.structs.replace(unit.config, official_prompts=folder)
    return msgspec.structs.replace(unit, config=config)


def _add_judges(
    units: Sequence[Unit], judges: Mapping[str, JudgePlan], shared: UnitJobs, plan: Plan
) -> dict[Path, list[JobDict]]:
    """Add, for each benchmark that is judged, jobs after those of its answers; `shared`: all but model and
    hardware."""
    check_addresses(units, shared.paths)
    jobs: dict[Path, list[JobDict]] = {}
    for name, judge in judges.items():
        own = [unit for unit in units if unit.name == f"{UNIT_PREFIX}{name}"]
        if not own:
            continue
        if not shared.options.dry_run:
            for host in (judge.host, *judge.more.values()):
                fetch_weights(host, shared.paths)
        made = msgspec.structs.replace(
            shared,
            options=judge.options,
            host=judge.host,
            more=judge.more,
            parts=judge.options.num_jobs or 1,
            name=job_name(f"{UNIT_PREFIX}{name}"),
        )
        jobs |= made.add(with_code(own, shared.paths), plan)
    return jobs


def _judge_names(units: Sequence[Unit]) -> str:
    return ", ".join(dict.fromkeys(str(unit.config.server.model) for unit in units))


def _run_spec(spec: EvaluationSpec, options: EvalOptions, beside: Mapping[str, Any], logs: str = "") -> RunSpec:
    return RunSpec(
        units=(),
        output_dir="",
        rerun_done=spec.rerun_done,
        resume_with=spec.resume_with,
        log_dir=str(spec.output_dir / "eval-logs" / logs),
        sequential=options.single_node_mode == "sequential",
        beside=dict(beside),
    )


@dataclass(eq=False)
class CompleteSummary(SummarizeScript):
    """A summary that fails where one of the files `expected` is missing: some of the numbers would be of too little."""

    _: KW_ONLY
    expected: Sequence[Path] = ()

    def build(self, context: Context) -> Script:
        script = super().build(context)
        files = [f"{path}.done" for path in self.expected]
        guard = ("bash", "-c", ALL_THERE, "bash", str(len(files)), *files)
        return msgspec.structs.replace(script, argv=(*guard, *script.argv))


class _ExistingFiles:
    """Which files of the results are there."""

    def __init__(self, paths: ClusterPaths, shell: Shell) -> None:
        self.paths, self.shell = paths, shell

    def exist(self, files: Sequence[Path]) -> list[bool]:
        return self.shell.exists([self.paths.host_path(str(file)) for file in files])


def _add_summaries(
    parsed: Parsed[EvalOptions],
    spec: EvaluationSpec,
    units: Sequence[Unit],
    jobs: Mapping[Path, Sequence[JobDict]],
    plan: Plan,
    looks: _ExistingFiles,
) -> list[JobDict]:
    """Add each benchmark's summary after its units, and after these the summary of all, which is returned.

    What is there and up to date is left out.
    """
    options = parsed.options
    summaries: list[JobDict] = []
    folders = {run.name: spec.output_dir / RESULTS_FOLDER / Path(*run.name.split(".")) for run in spec.runs}
    files = [folders[run.name] / METRICS for run in spec.runs] + [spec.output_dir / METRICS]
    *done, all_done = looks.exist(files)
    several = len(spec.runs) > 1
    for run, there in zip(spec.runs, done, strict=True):
        outputs = _merged_outputs([unit for unit in units if unit.name in (run.name, f"{UNIT_PREFIX}{run.name}")])
        needs = [job for output in outputs for job in jobs.get(output, ())]
        if several and (needs or not there):
            words = [*_metric_words(options, run), f"--save_metrics_path={folders[run.name] / METRICS}"]
            job = _summary_job(f"summarize-{run.name}", options, spec, [run.name], words, outputs)
            made = (str(folders[run.name] / METRICS),)
            summaries.append(plan.add(*job, unique_jobs(needs), outputs=(str(spec.output_dir),), makes=made))
        elif not several:
            summaries += needs
    if summaries or not all_done:
        words = _metric_words(options, None if several else spec.runs[0])
        words += _group_words(spec, looks.paths)
        words += _tracking_words(options)
        job = _summary_job("summarize", options, spec, list(folders), words, _merged_outputs(units))
        made = (str(spec.output_dir / METRICS),)
        return [plan.add(*job, unique_jobs(summaries), outputs=(str(spec.output_dir),), makes=made)]
    return []


def _summary_job(
    name: str,
    options: EvalOptions,
    spec: EvaluationSpec,
    benchmarks: Sequence[str],
    words: Sequence[str],
    outputs: Sequence[Path],
) -> tuple[str, list[CommandGroup]]:
    script = CompleteSummary(
        str(spec.output_dir), benchmarks=",".join(benchmarks), extra_arguments=words, expected=outputs
    )
    extra = options.extra_benchmark_map
    if isinstance(extra, str) and extra.lstrip().startswith("{"):
        raise ConfigError("--extra_benchmark_map: jobs need the path of a file, not JSON text.")
    command = Command(
        script,
        container=options.main_container or OWN_CONTAINER,
        name=SUMMARY,
        environment={MAPS_VARIABLE: extra} if extra else None,
    )
    return name, [CommandGroup([command], hardware=summary_hardware(options), name="main")]


def summary_hardware(options: EvalOptions) -> HardwareConfig:
    """Return the hardware of jobs that only make tables."""
    if not options.summarize_sbatch_kwargs:
        return hardware_of(options)
    return hardware_of(
        options, sbatch_kwargs=read_json(options.summarize_sbatch_kwargs, "--summarize_sbatch_kwargs")
    )


def _metric_words(options: EvalOptions, run: BenchmarkRun | None) -> list[str]:
    """Return the options that name the metric, where there is one, so that the job need not know where a benchmark was
    found."""
    words = [f"--accept_lost={options.accept_lost:g}"]
    kwargs = options.metrics_kwargs
    metric = options.metric_type
    if run is not None and metric is None:
        metric = run.benchmark.metric
        merged = {**run.benchmark.metric_config, **read_json(kwargs, "--metrics_kwargs")}
        kwargs = json.dumps(merged) if merged else ""
    if metric is not None:
        words.append(f"--metric_type={metric}")
    if kwargs:
        return [*words, f"--metrics_kwargs={kwargs}"]
    return words


def _group_words(spec: EvaluationSpec, paths: ClusterPaths) -> list[str]:
    """Return the options that tell a job where the formulas of the user's own groups are."""
    places = dict.fromkeys(run.group_at for run in spec.runs if run.group is not None and run.group.score)
    folders = [paths.code_in_job(place) for place in places if place]
    if folders:
        return [f"--group={','.join(folders)}"]
    return []


def _tracking_words(options: EvalOptions) -> list[str]:
    if options.wandb_name is None:
        return []
    words = [f"--wandb_name={options.wandb_name}", f"--wandb_project={options.wandb_project}"]
    if options.wandb_group:
        return [*words, f"--wandb_group={options.wandb_group}"]
    return words


def _merged_outputs(units: Sequence[Unit]) -> list[Path]:
    """Return the merged output files, which users see."""
    return list(dict.fromkeys(unit.merged for unit in units))
