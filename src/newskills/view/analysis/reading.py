# SPDX-License-Identifier: Apache-2.0
"""Output files → samples with their verdicts, many at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from newskills.base.errors import DataError, UserError
from newskills.base.records import Row
from newskills.base.store import bounded_lines, open_for_reading
from newskills.base.terminal import counted
from newskills.metrics import make_metric
from newskills.metrics.counting.base import ScoreMetric, is_lost
from newskills.run.judging.recorded import fields_of, grade_problems, text_verdict
from newskills.run.reporting.predictions import Decoder, decode_record, decoder_of
from newskills.run.reporting.results import SEEDED
from newskills.run.reporting.summarize import SummaryOptions, UngradedError, choose_metric
from newskills.view.analysis.folders import ResultFolders
from newskills.view.comparison.records import metric_finder, read_facts
from newskills.view.discovery import BenchmarkFiles, OutputFile, Run
from newskills.view.filters.columns import UNGRADED, SampleFacts
from newskills.view.filters.matching import OUTCOMES, SamplePredicate

BATCH = 8_192
"""Samples in memory at a time, unless their texts are long."""
LONG_BATCH = 512


class SampleReading(NamedTuple):
    """What is read of each record: the keys `fields`; samples for which `fits` is false are left out."""

    fields: frozenset[str]
    fits: SamplePredicate | None = None
    batch: int = BATCH


def read_batches(results: ResultFolders, reading: SampleReading, notes: list[str]) -> Iterator[list[SampleFacts]]:
    """Yield the samples of all finished files in batches; `notes` gets what was left out."""
    samples = _all(results, reading, notes)
    while batch := list(islice(samples, reading.batch)):
        yield batch


def _all(results: ResultFolders, reading: SampleReading, notes: list[str]) -> Iterator[SampleFacts]:
    for run, benchmark in results.benchmarks():
        samples = _of_benchmark(run, benchmark, reading, notes)
        yield from samples if reading.fits is None else filter(reading.fits, samples)


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
        metric = made if isinstance(made, ScoreMetric) else None
        if metric is None:
            notes.append(f"{where}: the metric '{name}' gives samples no score of their own.")
    except UngradedError:
        name = ""
    except UserError as error:
        notes.append(f"{where}: {error.message}")
        return
    for file in files:
        broken = _Broken()
        rows = _judged(file.path, name, metric, reading.fields, broken)
        if metric is None:
            yield from _unjudged(rows, run, benchmark, _seed(file))
        else:
            yield from _scored(rows, run, benchmark, _seed(file), metric)
        if broken.lines:
            notes.append(f"{where}: {counted(broken.lines, 'line')} of {file.path.name} cannot be read.")


class _Broken:
    lines = 0


def _seed(file: OutputFile) -> int | None:
    """Return the seed that the name of a file or of a chunk has."""
    merged = file.name.partition("_chunk_")[0].partition("-chunk")[0].removesuffix(".jsonl") + ".jsonl"
    match = SEEDED.fullmatch(merged)
    return int(match[1]) if match else file.seed


def _judged(
    path: Path, name: str, metric: ScoreMetric | None, wanted: frozenset[str], broken: _Broken
) -> Iterator[Row]:
    """Return the rows of a file, those whose verdict is a judge's text with what it says."""
    how = text_verdict(name, path) if metric is not None else None
    fields: Mapping[str, Any] = {
        **dict.fromkeys(("id", "outcome", "outcome_cause", *sorted(wanted)), Any),
        **(metric.fields if metric is not None else {}),
        **(fields_of(how) if how else {}),
    }
    rows = _rows(path, decoder_of(fields), broken)
    if how is None:
        return rows
    return (row for (row,) in grade_problems(([row] for row in rows), how))


def _rows(path: Path, decoder: Decoder, broken: _Broken) -> Iterator[Row]:
    """Yield the rows that can be read; records without an identity are known by their line."""
    place = 0
    with open_for_reading(path) as lines:
        for number, line in enumerate(bounded_lines(lines), 1):
            if line is not None and line.isspace():
                continue
            place += 1
            try:
                if line is None:
                    raise DataError("The line is too long.")
                row = decode_record(line, decoder, path, number)
            except DataError:
                broken.lines += 1
                continue
            if row.get("id") in (None, ""):
                row["id"] = f"line {place}"
            yield row


def _scored(
    rows: Iterable[Row], run: Run, benchmark: BenchmarkFiles, seed: int | None, metric: ScoreMetric
) -> Iterator[SampleFacts]:
    """Yield the samples with outcome, cause and score as `ns samples` and `ns compare` have them."""
    name, headline = benchmark.name, metric.headline
    for row in rows:
        values = {} if is_lost(row) else metric.scores(row)
        outcome, cause = metric.ending(row, values, metric.answer(row))
        score = None
        for kind in headline:
            score = values.get(kind)
            if score is not None:
                break
        if score is None:
            outcome = "unscored"
        yield SampleFacts(run.id, name, seed, outcome, cause, None if score is None else float(score), row)


def _unjudged(rows: Iterable[Row], run: Run, benchmark: BenchmarkFiles, seed: int | None) -> Iterator[SampleFacts]:
    """Yield samples of which no metric knows a score; the record may still name an outcome."""
    for row in rows:
        outcome = row.get("outcome")
        named_outcome = outcome if isinstance(outcome, str) and outcome in OUTCOMES else UNGRADED
        cause = row.get("outcome_cause")
        yield SampleFacts(
            run.id, benchmark.name, seed, named_outcome, cause if isinstance(cause, str) else None, None, row
        )
