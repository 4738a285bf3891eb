# SPDX-License-Identifier: Apache-2.0
"""From the options of `ns eval` to what is evaluated, with which settings."""

from __future__ import annotations

from pathlib import Path

from newskills.benchmarks.files.names import SETTINGS
from newskills.benchmarks.lm_eval.names import WISHES
from newskills.config.command_line import Parsed
from newskills.pipelines.arguments import (
    chunk_count,
    chunk_ids,
    command_line,
    default_output,
    prompt_layer,
    read_json,
    user_layer,
)
from newskills.pipelines.evaluation.early_stops import with_until
from newskills.pipelines.evaluation.harness_tasks import harness_wishes
from newskills.pipelines.evaluation.judges import JudgePlan, judge_plans
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.evaluation.tables import print_guesses, table_words
from newskills.pipelines.models import choose_model, hosting_of
from newskills.pipelines.options import check_log_samples, optional_path
from newskills.pipelines.placement.cluster import ClusterPaths
from newskills.pipelines.placement.mounted_benchmarks import check_names, mounted_benchmarks
from newskills.pipelines.placement.packaged_code import at_repository
from newskills.pipelines.units.modules import solver_layers
from newskills.pipelines.units.sandbox import sandbox_layer
from newskills.run.evaluate import EvaluationSpec
from newskills.run.planning.plan import parse_benchmarks

SPLIT = "split"
SUMMARY = "summary"
"""Command of a job that prints tables."""


def evaluation_spec(parsed: Parsed[EvalOptions], there: ClusterPaths | None = None) -> EvaluationSpec:
    """Resolve and check everything, and do nothing; `there`: the paths of a cluster. Raises NewskillsError."""
    return evaluation_spec_and_judges(parsed, there)[0]


def evaluation_spec_and_judges(
    parsed: Parsed[EvalOptions], there: ClusterPaths | None = None
) -> tuple[EvaluationSpec, dict[str, JudgePlan]]:
    """Return the specification, resolved and checked, with where the judges run; `there`: the paths of a cluster.
    Raises NewskillsError."""
    if there is None:
        parsed = at_repository(parsed)
    else:
        check_names(parsed.objects)
    options = parsed.options
    check_log_samples(options)
    choice = choose_model(options, parsed.overrides, elsewhere=there is not None)
    data_dir = options.data_dir
    if there is not None and data_dir:
        data_dir = there.host_path(there.path_in_job(data_dir, "--data_dir"))
    benchmarks = options.benchmarks
    if there is not None:
        benchmarks = there.packaged.read_here(benchmarks, "--benchmarks")
    words = table_words(parsed.overrides, benchmarks)
    runs = parse_benchmarks(
        benchmarks,
        data_dir=optional_path(data_dir),
        split=options.split or parsed.overrides.get(SPLIT),
        extra=options.extra_benchmark_map,
        elsewhere=there is not None and there.cluster.ssh_tunnel is not None and bool(data_dir),
        mounted=mounted_benchmarks(there) if there is not None else {},
        objects=parsed.objects,
        words=words,
        wishes=harness_wishes(parsed.overrides, benchmarks),
    )
    print_guesses(run.benchmark for run in runs)
    if options.output_dir:
        folder = Path(options.output_dir)
    else:
        folder = default_output(options.expname or "eval")
    if there is not None:
        folder = Path(there.path_in_job(str(folder), "--output_dir"))
    logs = Path(options.log_dir or folder / "eval-logs")
    judges = judge_plans(options, runs, logs, parsed.overrides, elsewhere=there is not None)
    hosting = None
    if there is None:
        hosting = hosting_of(choice, options, logs)
    spec = EvaluationSpec(
        runs=runs,
        output_dir=folder,
        layers=[
            *solver_layers(options.generation_type, options.generation_module, there),
            choice.layer,
            sandbox_layer(options),
            *prompt_layer(options.prompt_source),
            user_layer(parsed.overrides, consumed=(SPLIT, *SETTINGS, *WISHES)),
        ],
        starting_seed=options.starting_seed,
        num_chunks=chunk_count(options),
        chunk_ids=chunk_ids(options),
        hosting=hosting,
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
    return with_until(spec, options, elsewhere=there is not None), judges
