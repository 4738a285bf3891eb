# SPDX-License-Identifier: Apache-2.0
"""What `ns eval` does. Apart from its options, so that help and completion load no engine."""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.base.errors import NewskillsError
from newskills.commands._model import choose_model, hosting_of
from newskills.commands._options import tracking_of
from newskills.commands._sandbox import check_sandbox, sandbox_layer
from newskills.commands._work import (
    check_place,
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
from newskills.run.evaluate import Evaluation, EvaluationSpec, Say, evaluate, plan_evaluation
from newskills.run.plan import RESULTS, parse_benchmarks
from newskills.run.tracking import log_reports

SPLIT = "split"


def run(parsed: Parsed[Options]) -> int:
    spec = specification(parsed)
    planned = plan_evaluation(spec)
    check_sandbox(parsed.options, planned)
    if parsed.explain or dry_run(parsed.options, planned):
        (show_explained if parsed.explain else show_plan)(planned)
        return 0
    evaluation = work(parsed, spec, say=lambda text: print(text, flush=True))
    sys.stdout.write(f"results: {spec.output_dir / RESULTS}\n")
    for unit in evaluation.result.units:
        if unit.note and not evaluation.message:
            notice(f"{unit.output}: {unit.note}")
    if evaluation.message:
        sys.stderr.write(f"{evaluation.message}\n")
    return evaluation.exit_code


def result(parsed: Parsed[Options]) -> Evaluation | None:
    """For Python: None for a dry run; raises NewskillsError where work is left or the numbers cannot be trusted."""
    spec = specification(parsed)
    planned = plan_evaluation(spec)
    check_sandbox(parsed.options, planned)
    if dry_run(parsed.options, planned):
        show_plan(planned)
        return None
    evaluation = work(parsed, spec, say=lambda text: None)
    if evaluation.exit_code:
        raise NewskillsError(evaluation.message)
    return evaluation


def specification(parsed: Parsed[Options]) -> EvaluationSpec:
    """Everything resolved and checked, nothing done. Raises NewskillsError."""
    options = parsed.options
    check_place(options, parsed.given)
    choice = choose_model(options, parsed.overrides)
    runs = parse_benchmarks(
        options.benchmarks,
        data_dir=Path(options.data_dir) if options.data_dir else None,
        split=options.split or parsed.overrides.get(SPLIT),
        extra=options.extra_benchmark_map,
    )
    folder = Path(options.output_dir) if options.output_dir else default_output(options.expname or "eval")
    logs = Path(options.log_dir or folder / "eval-logs")
    return EvaluationSpec(
        runs=runs,
        output_dir=folder,
        layers=[choice.layer, sandbox_layer(options), user_layer(parsed.overrides, consumed=(SPLIT,))],
        starting_seed=options.starting_seed,
        num_chunks=options.num_chunks,
        chunk_ids=chunk_ids(options),
        hosting=hosting_of(choice, options, logs),
        log_dir=str(logs),
        rerun_done=options.rerun_done,
        summarize=options.auto_summarize_results,
        metric_type=options.metric_type,
        metrics_kwargs=read_json(options.metrics_kwargs, "--metrics_kwargs"),
        accept_lost=options.accept_lost,
        resume_with=command_line("eval"),
    )


def work(parsed: Parsed[Options], spec: EvaluationSpec, *, say: Say) -> Evaluation:
    options = parsed.options
    tracking = tracking_of(
        options.wandb_name, options.wandb_project, options.wandb_group, samples=options.log_samples
    )
    evaluation = evaluate(spec, say=say)
    if tracking is not None and evaluation.reports:
        outputs = {unit.name: Path(unit.output) for unit in reversed(evaluation.result.units)}
        log_reports(tracking, evaluation.reports, outputs)
    return evaluation
