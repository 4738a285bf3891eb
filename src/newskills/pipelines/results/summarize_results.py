# SPDX-License-Identifier: Apache-2.0
"""What `ns summarize_results` does: tables and metrics.json of a results folder, wherever its records come from."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.tables import output_width
from newskills.benchmarks import get_benchmark, get_group
from newskills.config.command_line import Parsed
from newskills.pipelines.arguments import read_json
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import optional_path, split_names, tracking_of
from newskills.pipelines.results.summarize_results_options import SummarizeResultsOptions
from newskills.run.evaluate import require_trust
from newskills.run.reporting.groups import GroupFor
from newskills.run.reporting.summarize import (
    METRICS_FILE,
    Summary,
    SummaryOptions,
    choose_metric,
    extended_path,
    summarize,
    wanted_benchmarks,
)
from newskills.run.reporting.tables import render_tables
from newskills.run.reporting.tracking import log_reports

if TYPE_CHECKING:
    from newskills.pipelines.placement.results import ResultsPlace


def metric_for(name: str) -> tuple[str, dict[str, Any]]:
    """Return the metric of the benchmark called `name`, and its settings. Raises UnknownNameError."""
    benchmark = get_benchmark(name)
    return benchmark.metric, benchmark.metric_config


def group_for(own: Sequence[str]) -> GroupFor:
    """Return the lookup of groups by name; `own`: where some are defined. Raises ConfigError for what is no
    group."""
    groups = {}
    for place in own:
        if (group := get_group(place)) is None:
            raise ConfigError(f"--group: {place} is not a group of benchmarks.")
        groups[group.name] = group
    return lambda name: groups.get(name) or get_group(name)


def run(parsed: Parsed[SummarizeResultsOptions]) -> int:
    options = parsed.options
    summary = make_summary(parsed)
    if summary is None:
        return 0
    for note in summary.notes:
        print_note(note)
    if options.verbose:
        sys.stdout.write(render_tables(summary.reports, options.accept_lost / 100, output_width()))
    sys.stdout.write(f"\nmetrics: {summary.path}\n")
    if options.cluster is None:
        sys.stdout.write(f"samples: ns view {shlex.quote(options.results_dir)}\n")
    _require_numbers(summary)
    require_trust(summary.reports, options.accept_lost)
    return 0


def summarize_results(parsed: Parsed[SummarizeResultsOptions]) -> Summary | None:
    """Summarize for Python, and return the summary, None for a dry run; raises NewskillsError where the numbers
    cannot be trusted."""
    summary = make_summary(parsed)
    if summary is not None:
        _require_numbers(summary)
        require_trust(summary.reports, parsed.options.accept_lost)
    return summary


def _require_numbers(summary: Summary) -> None:
    """Raise DataError for benchmarks whose records are broken."""
    if summary.failed:
        raise DataError(summary.failures)


def make_summary(parsed: Parsed[SummarizeResultsOptions]) -> Summary | None:
    """Make the summary; None for a dry run, which was shown. Raises NewskillsError for what cannot be read."""
    options = parsed.options
    from newskills.pipelines.placement.results import results_place

    place = results_place(options.results_dir, options)
    tracking = tracking_of(options.wandb_name, options.wandb_project, options.wandb_group)
    how = SummaryOptions(
        benchmarks=split_names(options.benchmarks),
        max_samples=options.max_samples,
        max_seq_len=options.max_seq_len,
        errors_are_incorrect=options.errors_as == "incorrect",
        metric_type=options.metric_type,
        metrics_kwargs=read_json(options.metrics_kwargs, "--metrics_kwargs"),
        accept_lost=options.accept_lost / 100,
        save_metrics_path=optional_path(options.save_metrics_path),
        group_for=group_for(split_names(options.group)),
    )
    if options.dry_run:
        show_dry_run(_dry_run_steps(place, how))
        return None
    with place.local_folder() as folder:
        summary = summarize(folder, metric_for, how)
        if options.debug:
            for step in _read_steps(folder, how):
                print_note(" ".join(map(str, step)))
        if place.remote is not None:
            place.send_metrics(folder)
            if how.save_metrics_path is None:
                there = f"{place.remote.name}:{place.folder}/{METRICS_FILE}"
                summary = msgspec.structs.replace(summary, path=Path(there))
    if tracking is not None:
        log_reports(tracking, summary.reports, {})
    return summary


def _read_steps(folder: Path, how: SummaryOptions) -> Iterator[Step]:
    """Yield each file that is read, with its benchmark and metric. Raises NewskillsError for what cannot be read."""
    for result in wanted_benchmarks(folder, how):
        if result.files:
            name = choose_metric(result.benchmark, result.files, metric_for, how)[0]
        else:
            name = "no output files"
        for file in result.files or (result.folder,):
            yield "reads", file, f"{result.benchmark}: {name}"


def _dry_run_steps(place: ResultsPlace, how: SummaryOptions) -> Iterator[Step]:
    folder = Path(place.folder)
    if place.remote is None:
        with place.local_folder() as here:
            yield from _read_steps(here, how)
    else:
        yield from (
            ("fetches", f"{place.remote.name}:{path}", f"{size} bytes") for path, size in place.list_records()
        )
    path = how.save_metrics_path or folder / METRICS_FILE
    yield "writes", path, ""
    yield "writes", extended_path(path), ""
    if not how.partial:
        yield "writes", folder / f"…/{METRICS_FILE}", "for each benchmark, beside its records"
