# SPDX-License-Identifier: Apache-2.0
"""What `ns summarize_robustness` does: how much the prompts of a robustness evaluation change the scores."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from newskills.base.errors import NewskillsError
from newskills.base.tables import output_width
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import optional_path
from newskills.pipelines.results.summarize_results import metric_for
from newskills.pipelines.results.summarize_robustness_options import SummarizeRobustnessOptions
from newskills.run.reporting.robustness import (
    FOLDER,
    TABLES_FILE,
    RobustnessSummary,
    prompts_of,
    render_robustness,
    summarize_robustness,
)
from newskills.run.reporting.summarize import METRICS_FILE, SummaryOptions

if TYPE_CHECKING:
    from newskills.pipelines.placement.results import ResultsPlace


def run(parsed: Parsed[SummarizeRobustnessOptions]) -> int:
    summary = make_summary(parsed)
    if summary is None:
        return 0
    for note in summary.notes:
        print_note(note)
    if parsed.options.verbose:
        sys.stdout.write(render_robustness(summary.benchmarks, output_width()))
    sys.stdout.write(f"\nrobustness: {summary.path}\n")
    _require_trust(summary, parsed.options.accept_lost)
    return 0


def summarize_robust_eval(parsed: Parsed[SummarizeRobustnessOptions]) -> RobustnessSummary | None:
    """Summarize for Python, and return the summary, None for a dry run; raises NewskillsError where the numbers
    cannot be trusted."""
    summary = make_summary(parsed)
    if summary is not None:
        _require_trust(summary, parsed.options.accept_lost)
    return summary


def make_summary(parsed: Parsed[SummarizeRobustnessOptions]) -> RobustnessSummary | None:
    """Make the summary; None for a dry run, which was shown. Raises NewskillsError for what cannot be read."""
    options = parsed.options
    from newskills.pipelines.placement.results import results_place

    place = results_place(options.results_dir, options)
    how = SummaryOptions(
        accept_lost=options.accept_lost / 100,
        save_metrics_path=optional_path(options.save_metrics_path),
    )
    if options.dry_run:
        show_dry_run(_dry_run_steps(place, how))
        return None
    with place.local_folder() as folder:
        summary = summarize_robustness(folder, metric_for, how)
        if options.debug:
            for step in _read_steps(folder):
                print_note(" ".join(map(str, step)))
        if place.remote is not None:
            place.send_metrics(folder)
            if how.save_metrics_path is None:
                there = Path(f"{place.remote.name}:{place.folder}/{FOLDER}/{METRICS_FILE}")
                summary = msgspec.structs.replace(summary, path=there)
    return summary


def _require_trust(summary: RobustnessSummary, accept_lost: float) -> None:
    withheld = [benchmark.benchmark for benchmark in summary.benchmarks if benchmark.withheld]
    if withheld:
        raise NewskillsError(
            f"{', '.join(withheld)}: with some prompt, more than {accept_lost:g} % of the samples are "
            "unscored (failed requests or graders), so no scores are shown. --accept_lost PERCENT accepts "
            "them."
        )


def _read_steps(folder: Path) -> Iterator[Step]:
    for prompts in prompts_of(folder).values():
        for prompt, result in prompts.items():
            for file in result.files:
                yield "reads", file, f"{result.benchmark}: {prompt}"


def _dry_run_steps(place: ResultsPlace, how: SummaryOptions) -> Iterator[Step]:
    if place.remote is None:
        with place.local_folder() as here:
            yield from _read_steps(here)
    else:
        yield from (
            ("fetches", f"{place.remote.name}:{path}", f"{size} bytes") for path, size in place.list_records()
        )
    path = how.save_metrics_path or Path(place.folder) / FOLDER / METRICS_FILE
    yield "writes", path, ""
    yield "writes", path.with_name(TABLES_FILE), ""
