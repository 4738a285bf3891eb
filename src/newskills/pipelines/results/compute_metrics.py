# SPDX-License-Identifier: Apache-2.0
"""What `ns compute_metrics` does: metrics of single output files, each file one seed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from newskills.base.errors import DataError, UnknownNameError
from newskills.base.records import Report
from newskills.base.registry import fold
from newskills.base.tables import output_width
from newskills.benchmarks import catalog_entries
from newskills.config.command_line import Parsed
from newskills.pipelines.arguments import read_json
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.notices import print_note
from newskills.pipelines.results.compute_metrics_options import ComputeMetricsOptions
from newskills.pipelines.results.summarize_results import metric_for
from newskills.run.evaluate import require_trust
from newskills.run.reporting.summarize import (
    SummaryOptions,
    choose_metric,
    extended_path,
    named_in,
    summarize_files,
    write_metrics,
)
from newskills.run.reporting.tables import render_tables


def run(parsed: Parsed[ComputeMetricsOptions]) -> int:
    if (reports := _compute_reports(parsed.options)) is None:
        return 0
    sys.stdout.write(render_tables(reports, parsed.options.accept_lost / 100, output_width()))
    require_trust(reports, parsed.options.accept_lost)
    return 0


def compute_metrics(parsed: Parsed[ComputeMetricsOptions]) -> list[Report] | None:
    """Compute metrics for Python, and return the reports, None for a dry run; raises NewskillsError where the
    numbers cannot be trusted."""
    reports = _compute_reports(parsed.options)
    if reports is not None:
        require_trust(reports, parsed.options.accept_lost)
    return reports


def _compute_reports(options: ComputeMetricsOptions) -> list[Report] | None:
    """Return the reports; None for a dry run, which was shown. Raises NewskillsError for what cannot be read, and
    for an unknown benchmark."""
    files = [Path(name) for name in options.prediction_jsonl_files]
    for file in files:
        if not file.is_file():
            raise DataError(f"There is no file {file}.")
    if options.metric_type is None:
        _check_name(options.benchmark, files[0].resolve().parent)
    summary = SummaryOptions(
        max_samples=options.max_samples,
        metric_type=options.metric_type,
        metrics_kwargs=read_json(options.metrics_kwargs, "--metrics_kwargs"),
        accept_lost=options.accept_lost / 100,
    )
    if options.dry_run:
        name, kwargs, _ = choose_metric(options.benchmark, files, metric_for, summary)
        show_dry_run(_dry_run_steps(options, files, f"{name} {kwargs or ''}".rstrip()))
        return None
    reports, notes = summarize_files(options.benchmark, files, metric_for, summary)
    if not reports:
        raise DataError(f"{', '.join(map(str, files))}: there are no rows to score.")
    for note in notes:
        print_note(note)
    if options.save_metrics_path:
        write_metrics(Path(options.save_metrics_path), reports, options.accept_lost / 100)
    return reports


def _check_name(name: str, folder: Path) -> None:
    """Raise UnknownNameError for an unknown benchmark; a name that only the results' folder knows, as of a benchmark of
    one's own, will do."""
    try:
        metric_for(name)
    except UnknownNameError as error:
        if fold(name) not in map(fold, (folder.name, named_in(folder))):
            names = [known_name for entry in catalog_entries() for known_name in (entry.name, *entry.aliases)]
            own = "For your own benchmark, choose the metric: --metric_type=math."
            raise UnknownNameError(error.kind, name, names, hint=own) from error


def _dry_run_steps(options: ComputeMetricsOptions, files: list[Path], metric: str) -> Iterator[Step]:
    yield "metric", metric, f"for {options.benchmark}"
    for file in files:
        yield "reads", file, ""
    if options.save_metrics_path:
        yield "writes", options.save_metrics_path, ""
        yield "writes", extended_path(Path(options.save_metrics_path)), ""
