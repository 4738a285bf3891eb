# SPDX-License-Identifier: Apache-2.0
"""`ns eval`: a model on benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from newskills.base.errors import NewskillsError
from newskills.commands._command import Command
from newskills.commands._model import choose_model
from newskills.commands._options import OLD_NAMES, AcceptLost, WorkOptions, doc, tracking_of
from newskills.commands._work import (
    check_place,
    command_line,
    default_output,
    dry_run,
    notice,
    read_json,
    show_explained,
    show_plan,
    user_layer,
)
from newskills.config.command_line import Parsed
from newskills.config.ids import parse_ids
from newskills.run.config import GenerationConfig
from newskills.run.evaluate import Evaluation, EvaluationSpec, Say, evaluate, plan_evaluation
from newskills.run.hosting import Hosting
from newskills.run.plan import RESULTS, parse_benchmarks
from newskills.run.tracking import log_reports

SPLIT = "split"


class Options(WorkOptions, frozen=True, kw_only=True):
    benchmarks: Annotated[str, doc("name[:samples],… ; samples ≥ 1 = seeds at temperature 0.7; none = greedy")]
    output_dir: Annotated[str | None, doc("folder of the results (default: results/<expname>)")] = None
    data_dir: Annotated[str | None, doc("where prepared data lies")] = None
    split: Annotated[str | None, doc("split to evaluate (default: the benchmark's own)")] = None
    extra_benchmark_map: Annotated[str | None, doc("JSON file name → folder of further benchmarks")] = None
    num_jobs: Annotated[int | None, doc("jobs to spread the work over (clusters; here it is one process)")] = None
    auto_summarize_results: Annotated[bool, doc("tables and metrics.json after the run")] = True
    metric_type: Annotated[str | None, doc("other metrics class (name or module::Class)")] = None
    metrics_kwargs: Annotated[str, doc("JSON of arguments for it")] = ""
    accept_lost: AcceptLost = 1.0


def run(parsed: Parsed[Options]) -> int:
    spec = specification(parsed)
    planned = plan_evaluation(spec)
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
    hosting = None
    if choice.host is not None:
        log = Path(options.log_dir or folder / "eval-logs") / "server.log"
        hosting = Hosting(spec=choice.host, log=log, timeout=options.server_timeout)
    return EvaluationSpec(
        runs=runs,
        output_dir=folder,
        layers=[choice.layer, user_layer(parsed.overrides, consumed=(SPLIT,))],
        starting_seed=options.starting_seed,
        num_chunks=options.num_chunks,
        chunk_ids=tuple(parse_ids(options.chunk_ids, "--chunk_ids")) if options.chunk_ids is not None else (),
        hosting=hosting,
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


COMMAND = Command(
    name="eval",
    summary="Evaluate a model on benchmarks: generate, grade while generating, and print tables with intervals. "
    "Interrupted runs go on where they were; samples lost to an instrument failure are never counted as wrong.",
    options=Options,
    config=GenerationConfig,
    aliases=OLD_NAMES,
    run=run,
    result=result,
    examples=(
        "ns eval --benchmarks=gsm8k:4,math-500:2 --model=smollm2 --server_type=llamacpp --output_dir=results "
        "++max_samples=50",
        "ns eval --benchmarks=gsm8k:0 --model=gpt-4o-mini --server_type=openai --output_dir=results",
    ),
)
