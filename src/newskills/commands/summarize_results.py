# SPDX-License-Identifier: Apache-2.0
"""`ns summarize_results DIR`: tables and metrics.json of a results folder, wherever its records come from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.benchmarks import get_benchmark
from newskills.commands._command import Command
from newskills.commands._options import (
    DEFAULT_PROJECT,
    NAME,
    AcceptLost,
    WandbGroup,
    WandbName,
    WandbProject,
    doc,
    tracking_of,
)
from newskills.commands._work import check_cluster, notice, read_json
from newskills.config.command_line import Parsed
from newskills.run.evaluate import require_trust
from newskills.run.summarize import Summary, SummaryOptions, summarize
from newskills.run.tables import render
from newskills.run.tracking import log_reports


class Options(Struct, frozen=True, kw_only=True):
    results_dir: Annotated[
        str, doc("folder of an evaluation, of one benchmark, or of several", {"positional": True})
    ]
    benchmarks: Annotated[str | None, doc("only these, comma separated (default: all found)")] = None
    max_samples: Annotated[int, doc("only the first n problems; -1 = all")] = -1
    max_seq_len: Annotated[int | None, doc("longer generations (tokens) count as wrong")] = None
    metric_type: Annotated[str | None, doc("other metrics class (name or module::Class)")] = None
    metrics_kwargs: Annotated[str, doc("JSON of arguments for it")] = ""
    save_metrics_path: Annotated[
        str | None, doc("where metrics.json goes (default: RESULTS_DIR/metrics.json)")
    ] = None
    accept_lost: AcceptLost = 1.0
    verbose: Annotated[bool, doc("print the tables")] = True
    cluster: Annotated[str | None, doc("where the results lie; none or local = this machine", NAME)] = None
    wandb_name: WandbName = None
    wandb_group: WandbGroup = None
    wandb_project: WandbProject = DEFAULT_PROJECT


def metric_for(name: str) -> tuple[str, dict[str, Any]]:
    """The metric of the benchmark called `name`. Raises UnknownNameError."""
    benchmark = get_benchmark(name)
    return benchmark.metric, benchmark.metric_config


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    summary = summarized(parsed)
    for note in summary.notes:
        notice(note)
    if options.verbose:
        sys.stdout.write(render(summary.reports, options.accept_lost / 100))
    sys.stdout.write(f"\nmetrics: {summary.path}\n")
    require_trust(summary.reports, options.accept_lost)
    return 0


def result(parsed: Parsed[Options]) -> Summary:
    """For Python: raises NewskillsError where the numbers cannot be trusted."""
    summary = summarized(parsed)
    require_trust(summary.reports, parsed.options.accept_lost)
    return summary


def summarized(parsed: Parsed[Options]) -> Summary:
    """Raises NewskillsError for what cannot be read."""
    options = parsed.options
    check_cluster(options.cluster)
    folder = Path(options.results_dir)
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}.")
    tracking = tracking_of(options.wandb_name, options.wandb_project, options.wandb_group)
    summary = summarize(
        folder,
        metric_for,
        SummaryOptions(
            benchmarks=tuple(options.benchmarks.split(",")) if options.benchmarks else (),
            max_samples=options.max_samples,
            max_seq_len=options.max_seq_len,
            metric_type=options.metric_type,
            metrics_kwargs=read_json(options.metrics_kwargs, "--metrics_kwargs"),
            accept_lost=options.accept_lost / 100,
            save_metrics_path=Path(options.save_metrics_path) if options.save_metrics_path else None,
        ),
    )
    if tracking is not None:
        log_reports(tracking, summary.reports, {})
    return summary


COMMAND = Command(
    name="summarize_results",
    summary="Print the tables of a results folder and write metrics.json: pass@k, averages, majority, intervals. "
    "Reads results of earlier runs and of the reference system; generates nothing.",
    options=Options,
    run=run,
    result=result,
    examples=("ns summarize_results results", "ns summarize_results results --benchmarks gsm8k --max_samples 100"),
)
