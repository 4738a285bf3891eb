# SPDX-License-Identifier: Apache-2.0
"""What `ns swe_bench` does: patches for the harness of SWE-bench, and its verdicts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from newskills.base.errors import ConfigError
from newskills.base.records import Ledger, Row
from newskills.base.store import read_rows, write_rows
from newskills.base.terminal import counted
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.config.command_line import Parsed
from newskills.environments.config import EnvironmentConfig
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.evaluation.swe_bench_options import SweBenchOptions
from newskills.pipelines.pages import ledger_line
from newskills.run.harnesses.swe_bench import (
    Harness,
    check_harness,
    grade_in_containers,
    read_reports,
    run_harness,
    with_reports,
    write_predictions,
)
from newskills.run.planning.spec import count_attempt
from newskills.run.records.chunks import count_lines


class SweBenchFile(Struct, frozen=True, kw_only=True):
    """A file that `ns swe_bench` wrote: predictions, of which some rows may have none, or records with verdicts, which
    `ledger` counts."""

    output: Path
    records: int
    without_patch: int = 0
    ledger: Ledger = field(default_factory=Ledger)


def export_or_grade_patches(parsed: Parsed[SweBenchOptions]) -> SweBenchFile | None:
    """Export, grade or report, and return the file that was written; None for a dry run. Raises ConfigError for options
    that are missing, DataError for rows and reports."""
    options = parsed.options
    if options.output_file is None:
        raise ConfigError("No output file is given. Give --output_file.")
    if options.action == "report" and options.reports is None:
        raise ConfigError("No reports are given. Give --reports: the folder or file that the harness wrote.")
    source, target = Path(options.input_file), Path(options.output_file)
    if options.dry_run:
        show_dry_run(_dry_run_steps(options, source, target))
        return None
    if options.action == "export":
        records, without = write_predictions(read_rows(source), target, options.model_name)
        sys.stdout.write(f"{target}: {records} predictions, {without} without a patch\n")
        return SweBenchFile(output=target, records=records, without_patch=without)
    if options.action == "grade" and options.engine != "harness":
        return _write_verdicts(target, _grade_in_containers(options, options.engine, source))
    if options.action == "report":
        reports = [Path(options.reports or "")]
    else:
        reports = _grade_in_harness(options, source, target)
    return _write_verdicts(target, with_reports(read_rows(source), read_reports(*reports)))


def _grade_in_containers(options: SweBenchOptions, engine: str, source: Path) -> Iterator[Row]:
    environment = EnvironmentConfig(
        engine=engine,
        container_formatter=options.container_formatter,
        at_once=options.workers,
    )
    rows = read_rows(load_rows(get_benchmark(options.benchmark), "", options.data_dir))
    return grade_in_containers(read_rows(source), rows, environment, float(options.timeout))


def _grade_in_harness(options: SweBenchOptions, source: Path, target: Path) -> list[Path]:
    """Run the harness; return the paths of its reports."""
    check_harness()
    folder = target.parent / "swe-bench-harness"
    folder.mkdir(parents=True, exist_ok=True)
    predictions = folder / "predictions.jsonl"
    write_predictions(read_rows(source), predictions, options.model_name)
    rows = load_rows(get_benchmark(options.benchmark), "", options.data_dir)
    return run_harness(
        Harness(
            dataset=rows,
            predictions=predictions,
            folder=folder,
            workers=options.workers,
            timeout=options.timeout,
        )
    )


def _write_verdicts(target: Path, records: Iterator[Row]) -> SweBenchFile:
    ledger = Ledger()
    rows = list(records)
    for record in rows:
        count_attempt(ledger, record["outcome"], record.get("outcome_cause"))
    write_rows(target, rows)
    sys.stdout.write(f"{target}: {counted(len(rows), 'row')}: {ledger_line(ledger)}\n")
    return SweBenchFile(output=target, records=len(rows), ledger=ledger)


def _dry_run_steps(options: SweBenchOptions, source: Path, target: Path) -> list[Step]:
    steps: list[Step] = [("reads", source, f"{count_lines(source)} records")]
    if options.action == "report":
        steps.append(("reads", options.reports, "reports of the harness"))
    if options.action == "grade":
        runner = "the tests"
        if options.engine == "harness":
            runner = "swebench.harness.run_evaluation"
        steps.append(("runs", runner, f"{options.workers} containers at once"))
    what = "predictions" if options.action == "export" else "records with verdicts"
    return [*steps, ("writes", target, what)]
