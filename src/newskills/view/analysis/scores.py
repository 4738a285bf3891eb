# SPDX-License-Identifier: Apache-2.0
"""The table `scores`: one row for each benchmark of a run, subset, mode (pass@1, majority@8) and score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from newskills.base.errors import NewskillsError
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.run.reporting.summarize import EXTENDED_FILE, METRICS_FILE, SummaryOptions, summarize_files
from newskills.run.reporting.tables import ACCEPT_LOST
from newskills.view.analysis.arrow import table_of
from newskills.view.analysis.folders import FolderPath, ResultFolders, find_results
from newskills.view.comparison.records import metric_finder, read_facts
from newskills.view.discovery import BenchmarkFiles, Run
from newskills.view.files import read_json
from newskills.view.filters.columns import Column, number_or_none, text_or_none, whole_or_none

if TYPE_CHECKING:
    import pyarrow

SCORE_COLUMNS = (
    Column(name="run", kind="word", meaning="folder of the run, below the folder that was named"),
    Column(name="benchmark", kind="word", meaning="benchmark, as `group.member` where it belongs to a group"),
    Column(name="subset", kind="word", meaning="subset of the benchmark; null: all of it"),
    Column(name="mode", kind="word", meaning="how samples are combined: pass@1, pass@1[avg-of-8], majority@8, …"),
    Column(name="score", kind="word", meaning="name of the score: symbolic_correct, judge_correct, …"),
    Column(name="value", kind="number", unit="percent", meaning="the score"),
    Column(name="low", kind="number", unit="percent", meaning="lower end of its 95 % interval"),
    Column(name="high", kind="number", unit="percent", meaning="upper end of its 95 % interval"),
    Column(name="n", kind="whole", unit="problems", meaning="problems that the score is over"),
    Column(name="unscored", kind="whole", unit="samples", meaning="samples without a verdict, which are left out"),
    Column(name="method", kind="word", meaning="how the interval was made"),
    Column(name="withheld", kind="flag", meaning="too many samples are unscored: `ns eval` shows no score"),
)
_EVERYTHING = SummaryOptions()


def scores(paths: FolderPath | Sequence[FolderPath]) -> pyarrow.Table:
    """Return the scores of all runs below `paths`. Raises ConfigError (pyarrow is missing), DataError.

    They are those of metrics.json where that is newer than the records, else counted from the records; nothing is
    written.
    """
    return scores_in(find_results(paths))


def scores_in(results: ResultFolders) -> pyarrow.Table:
    notes = list(results.notes)
    rows = [row for run, benchmark in results.benchmarks() for row in _score_rows(results, run, benchmark, notes)]
    values = [[row.get(column.name) for column in SCORE_COLUMNS] for row in rows]
    return table_of(SCORE_COLUMNS, values, notes)


def _score_rows(results: ResultFolders, run: Run, benchmark: BenchmarkFiles, notes: list[str]) -> Iterator[Row]:
    tables = _kept_reports(results, benchmark)
    if tables is None:
        tables = _count_reports(run, benchmark, notes)
    for name, report in tables.items():
        for mode, numbers in object_or_empty(report.get("numbers")).items():
            for score, number in object_or_empty(numbers).items():
                subset = None
                if name != benchmark.name:
                    subset = name.removeprefix(f"{benchmark.name}-")
                yield {
                    "run": run.id,
                    "benchmark": benchmark.name,
                    "subset": subset,
                    "mode": mode,
                    "score": score,
                    **_number_row(object_or_empty(number)),
                    "withheld": bool(report.get("withheld")),
                }


def _number_row(number: Row) -> Row:
    return {
        "value": number_or_none(number.get("value")),
        "low": number_or_none(number.get("low")),
        "high": number_or_none(number.get("high")),
        "n": whole_or_none(number.get("n")),
        "unscored": whole_or_none(number.get("unscored")),
        "method": text_or_none(number.get("method")),
    }


def _kept_reports(results: ResultFolders, benchmark: BenchmarkFiles) -> dict[str, Row] | None:
    """Return name → report of the file beside the records; None where there is none, or records are newer."""
    path = benchmark.folder / EXTENDED_FILE
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return None
    if not (benchmark.folder / METRICS_FILE).exists() or any(file.changed > changed for file in benchmark.files):
        return None
    reports = {name: object_or_empty(report) for name, report in read_json(results.folders, path).items()}
    if benchmark.name in reports:
        return reports
    return None


def _count_reports(run: Run, benchmark: BenchmarkFiles, notes: list[str]) -> dict[str, Row]:
    """Count the scores from the records, and return them as the file would have them."""
    files = [file.path for file in benchmark.files if not file.unfinished]
    if not files:
        return {}
    try:
        reports, _ = summarize_files(
            benchmark.name, files, metric_finder(read_facts(benchmark.folder)), _EVERYTHING
        )
    except NewskillsError as error:
        notes.append(f"{run.id} ({benchmark.name}) has no scores: {error.message}")
        return {}
    counted: dict[str, Row] = {}
    for report in reports:
        lost, total = report.ledger.lost, report.ledger.total
        numbers: Any = msgspec.to_builtins(report.numbers)
        counted[report.benchmark] = {"numbers": numbers, "withheld": bool(total) and lost / total > ACCEPT_LOST}
    return counted
