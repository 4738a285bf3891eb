# SPDX-License-Identifier: Apache-2.0
"""Output files → samples with their verdicts, many at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from newskills.base.errors import UserError
from newskills.base.records import Row
from newskills.base.terminal import counted
from newskills.metrics import make_metric
from newskills.metrics.counting.base import ScoreMetric
from newskills.run.judging.recorded import fields_of, grade_problems, text_verdict
from newskills.run.reporting.predictions import decoder_of
from newskills.run.reporting.summarize import SummaryOptions, UngradedError, choose_metric
from newskills.view.analysis.folders import ResultFolders
from newskills.view.comparison.records import (
    BenchmarkRecords,
    headline_score,
    metric_finder,
    read_facts,
    readable_rows,
    score_values,
)
from newskills.view.discovery import BenchmarkFiles, Run
from newskills.view.filters.columns import UNGRADED, SampleFacts
from newskills.view.filters.matching import OUTCOMES, SamplePredicate

BATCH_ROWS = 8_192
"""Samples in memory at a time, unless their texts are long."""
LONG_BATCH = 512


class SampleReading(NamedTuple):
    """What is read of each record: the keys `fields`; samples for which `fits` is false are left out."""

    fields: frozenset[str]
    fits: SamplePredicate | None = None
    batch: int = BATCH_ROWS


def read_batches(results: ResultFolders, reading: SampleReading, notes: list[str]) -> Iterator[list[SampleFacts]]:
    """Yield the samples of all finished files in batches; `notes` gets what was left out."""
    samples = _all_samples(results, reading, notes)
    while batch := list(islice(samples, reading.batch)):
        yield batch


def _all_samples(results: ResultFolders, reading: SampleReading, notes: list[str]) -> Iterator[SampleFacts]:
    for run, benchmark in results.benchmarks():
        samples = _of_benchmark(run, benchmark, reading, notes)
        if reading.fits is not None:
            samples = filter(reading.fits, samples)
        yield from samples


def _of_benchmark(
    run: Run, benchmark: BenchmarkFiles, reading: SampleReading, notes: list[str]
) -> Iterator[SampleFacts]:
    files = [file for file in benchmark.files if not file.unfinished]
    if not files:
        return
    paths = [file.path for file in files]
    where = f"{run.id} ({benchmark.name})"
    metric: ScoreMetric | None = None
    try:
        name, options, _ = choose_metric(
            benchmark.name, paths, metric_finder(read_facts(benchmark.folder)), SummaryOptions()
        )
        made = make_metric(name, **options)
        if isinstance(made, ScoreMetric):
            metric = made
        else:
            notes.append(f"{where}: the metric '{name}' gives samples no score of their own.")
    except UngradedError:
        name = ""
    except UserError as error:
        notes.append(f"{where}: {error.message}")
        return
    for file in files:
        records = BenchmarkRecords(benchmark=benchmark.name, folder=benchmark.folder, files=(file.path,))
        rows = _judged_rows(records, name, metric, reading.fields)
        if metric is None:
            yield from _unjudged_samples(rows, run, benchmark, file.seed)
        else:
            yield from _scored_samples(rows, run, benchmark, file.seed, metric)
        if unread := records.damaged + records.too_long:
            notes.append(f"{where}: {counted(unread, 'line')} of {file.path.name} cannot be read.")


def _judged_rows(
    records: BenchmarkRecords, name: str, metric: ScoreMetric | None, wanted: frozenset[str]
) -> Iterator[Row]:
    """Return the rows of the one file of `records`, those whose verdict is a judge's text with what it says."""
    (path,) = records.files
    fields: dict[str, Any] = dict.fromkeys(("id", "outcome", "outcome_cause", *sorted(wanted)), Any)
    how = None
    if metric is not None:
        fields |= metric.fields
        how = text_verdict(name, path)
    if how is not None:
        fields |= fields_of(how)
    rows = readable_rows(path, decoder_of(fields), records)
    if how is None:
        return rows
    return (row for (row,) in grade_problems(([row] for row in rows), how))


def _scored_samples(
    rows: Iterable[Row], run: Run, benchmark: BenchmarkFiles, seed: int | None, metric: ScoreMetric
) -> Iterator[SampleFacts]:
    """Yield the samples with outcome, cause and score as `ns samples` and `ns compare` have them."""
    name = benchmark.name
    for row in rows:
        values = score_values(row, metric)
        outcome, cause = metric.ending(row, values, metric.answer(row))
        score = headline_score(values, metric)
        if score is None:
            outcome = "unscored"
        yield SampleFacts(run.id, name, seed, outcome, cause, score, row)


def _unjudged_samples(
    rows: Iterable[Row], run: Run, benchmark: BenchmarkFiles, seed: int | None
) -> Iterator[SampleFacts]:
    """Yield samples of which no metric knows a score; the record may still name an outcome."""
    for row in rows:
        outcome = row.get("outcome")
        if isinstance(outcome, str) and outcome in OUTCOMES:
            named_outcome = outcome
        else:
            named_outcome = UNGRADED
        cause = row.get("outcome_cause")
        cause_text = cause if isinstance(cause, str) else None
        yield SampleFacts(run.id, benchmark.name, seed, named_outcome, cause_text, None, row)
