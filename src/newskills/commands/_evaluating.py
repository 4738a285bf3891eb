# SPDX-License-Identifier: Apache-2.0
"""What `ns eval` does. Apart from its options, so that help and completion load no engine."""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.base.errors import NewskillsError
from newskills.commands._cluster import Paths, placed
from newskills.commands._judging import JudgePlan, judge_plans
from newskills.commands._model import choose_model, hosting_of
from newskills.commands._mounted_benchmarks import mounted_benchmarks
from newskills.commands._options import tracking_of
from newskills.commands._packaged_code import at_repository
from newskills.commands._sandbox import check_sandbox, sandbox_layer
from newskills.commands._submitting import Prepared, finished, run_prepared
from newskills.commands._work import (
    chunk_ids,
    command_line,
    default_output,
    dry_run,
    notice,
    read_json,
    show_explained,
    show_plan,
    user_layer,
)
from newskills.commands.evaluate import Options
from newskills.config.command_line import Parsed
from newskills.launch.cluster import ClusterConfig
from newskills.launch.experiments import Experiment
from newskills.run.evaluate import Evaluation, EvaluationSpec, Say, evaluate, plan_evaluation, plan_judges
from newskills.run.judging import UNIT, check_judges
from newskills.run.plan import RESULTS, parse_benchmarks
from newskills.run.tracking import log_reports

SPLIT = "split"
SUMMARY = "summary"
"""Command of a job that prints tables."""


def run(parsed: Parsed[Options]) -> int:
    if (cluster := placed(parsed.options, parsed.given, parsed.options.num_jobs)) is not None:
        ready = prepare(parsed, cluster)
        return run_prepared(ready, show=(SUMMARY,)) if ready is not None else 0
    spec = specification(parsed)
    planned = plan_evaluation(spec)
    check_sandbox(parsed.options, planned)
    if parsed.explain or dry_run(parsed.options, planned):
        show(parsed, spec)
        return 0
    evaluation = work(parsed, spec, say=lambda text: print(text, flush=True))
    sys.stdout.write(f"results: {spec.output_dir / RESULTS}\n")
    for unit in evaluation.result.units:
        if unit.note and not evaluation.message:
            notice(f"{unit.output}: {unit.note}")
    if evaluation.message:
        sys.stderr.write(f"{evaluation.message}\n")
    return evaluation.exit_code


def prepare(parsed: Parsed[Options], cluster: ClusterConfig) -> Prepared | None:
    """The pipeline for `cluster`; None: nothing is left to do. Raises NewskillsError."""
    from newskills.commands import _eval_jobs

    return _eval_jobs.prepare(parsed, cluster)


def result(parsed: Parsed[Options]) -> Evaluation | Experiment | None:
    """For Python: None for a dry run; raises NewskillsError where work is left or the numbers cannot be trusted.

    On a cluster: what was submitted, None where nothing is left to do.
    """
    if (cluster := placed(parsed.options, parsed.given, parsed.options.num_jobs)) is not None:
        ready = prepare(parsed, cluster)
        return finished(ready) if ready is not None else None
    spec = specification(parsed)
    planned = plan_evaluation(spec)
    check_sandbox(parsed.options, planned)
    if dry_run(parsed.options, planned):
        show(parsed, spec)
        return None
    evaluation = work(parsed, spec, say=lambda text: None)
    if evaluation.exit_code:
        raise NewskillsError(evaluation.message)
    return evaluation


def show(parsed: Parsed[Options], spec: EvaluationSpec) -> None:
    """What would be done (`--dry_run`), or with which settings (`--explain`). Raises NewskillsError."""
    judged = plan_judges(spec)
    check_judges(judged, rerun_done=spec.rerun_done)
    (show_explained if parsed.explain else show_plan)([*plan_evaluation(spec), *judged])


def specification(parsed: Parsed[Options], there: Paths | None = None) -> EvaluationSpec:
    """Everything resolved and checked, nothing done; `there`: the paths of a cluster. Raises NewskillsError."""
    return specified(parsed, there)[0]


def specified(parsed: Parsed[Options], there: Paths | None = None) -> tuple[EvaluationSpec, dict[str, JudgePlan]]:
    """The same, with where the judges run. Raises NewskillsError."""
    if there is None:
        parsed = at_repository(parsed)
    options = parsed.options
    choice = choose_model(options, parsed.overrides, elsewhere=there is not None)
    data_dir = options.data_dir
    if there is not None and data_dir:
        data_dir = there.host(there.seen(data_dir, "--data_dir"))
    benchmarks = options.benchmarks
    if there is not None:
        benchmarks = there.packaged.read_here(benchmarks, "--benchmarks")
    runs = parse_benchmarks(
        benchmarks,
        data_dir=Path(data_dir) if data_dir else None,
        split=options.split or parsed.overrides.get(SPLIT),
        extra=options.extra_benchmark_map,
        elsewhere=there is not None and there.cluster.ssh_tunnel is not None and bool(data_dir),
        mounted=mounted_benchmarks(there) if there is not None else {},
    )
    folder = Path(options.output_dir) if options.output_dir else default_output(options.expname or "eval")
    if there is not None:
        folder = Path(there.seen(str(folder), "--output_dir"))
    logs = Path(options.log_dir or folder / "eval-logs")
    judges = judge_plans(options, runs, logs, elsewhere=there is not None)
    spec = EvaluationSpec(
        runs=runs,
        output_dir=folder,
        layers=[choice.layer, sandbox_layer(options), user_layer(parsed.overrides, consumed=(SPLIT,))],
        starting_seed=options.starting_seed,
        num_chunks=options.num_chunks,
        chunk_ids=chunk_ids(options),
        hosting=hosting_of(choice, options, logs) if there is None else None,
        judges={name: plan.judging for name, plan in judges.items()},
        log_dir=str(logs),
        rerun_done=options.rerun_done,
        sequential=options.single_node_mode == "sequential",
        summarize=options.auto_summarize_results,
        metric_type=options.metric_type,
        metrics_kwargs=read_json(options.metrics_kwargs, "--metrics_kwargs"),
        accept_lost=options.accept_lost,
        resume_with=command_line("eval"),
    )
    return spec, judges


def work(parsed: Parsed[Options], spec: EvaluationSpec, *, say: Say) -> Evaluation:
    options = parsed.options
    tracking = tracking_of(
        options.wandb_name, options.wandb_project, options.wandb_group, samples=options.log_samples
    )
    evaluation = evaluate(spec, say=say)
    if tracking is not None and evaluation.reports:
        units = list(reversed(evaluation.result.units))
        judged = {unit.name.removeprefix(UNIT): Path(unit.output) for unit in units if unit.name.startswith(UNIT)}
        outputs = {unit.name: Path(unit.output) for unit in units} | judged
        log_reports(tracking, evaluation.reports, outputs)
    return evaluation
