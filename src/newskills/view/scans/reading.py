# SPDX-License-Identifier: Apache-2.0
"""Results → samples with their outcomes, for scanners and diagnoses. What has no verdict is read as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import DataError, UnknownNameError, UserError
from newskills.base.records import Row
from newskills.run.reporting.results import BenchmarkResults, advice_to_name_a_run, list_results, output_files
from newskills.view.comparison.records import (
    BenchmarkRecords,
    read_facts,
    read_rows_with_verdicts,
    read_whole_rows,
)
from newskills.view.comparison.why import prompt_text
from newskills.view.discovery import discover_all
from newskills.view.folders import Folders


class SampleRow(NamedTuple):
    """A record with its verdict. `place`: its line, from 0; `score` None: unscored or ungraded; `template`: the
    benchmark's prompt."""

    output: Path
    seed: int | None
    place: int
    row: Row
    outcome: str
    cause: str | None
    score: float | None
    template: str

    @property
    def for_worker(self) -> Row:
        """What the pool of scanners takes."""
        return {
            "row": self.row,
            "outcome": self.outcome,
            "cause": self.cause,
            "score": self.score,
            "template": self.template,
        }


def chosen_benchmarks(folder: Path, wanted: tuple[str, ...]) -> list[BenchmarkResults]:
    """Return the benchmarks of a run with finished files, or those of the names. Raises DataError where nothing is
    there, UnknownNameError."""
    return _choose(list_results(folder), folder, wanted)


def chosen_below(folder: Path, wanted: tuple[str, ...], notes: list[str]) -> list[BenchmarkResults]:
    """Return the benchmarks of the folder itself and of all runs below it, as the viewer finds them; `notes` gets what
    was not looked at. Raises as `chosen_benchmarks`."""
    items = list_results(folder)
    own = {item.folder.resolve() for item in items if item.files}
    folders = Folders([folder])
    catalog = discover_all(folders)
    if not own:  # those of the folder itself may lie behind links, which the viewer leaves out
        notes += catalog.notes
    for run in sorted(catalog.runs.values(), key=lambda run: run.id):
        name = "" if run.folder in folders.roots else run.id
        items += [
            BenchmarkResults(benchmark.name, benchmark.folder, files, name)
            for benchmark in run.benchmarks.values()
            if benchmark.folder not in own and (files := output_files(benchmark.folder))
        ]
    return _choose(items, folder, wanted)


def _choose(items: list[BenchmarkResults], folder: Path, wanted: tuple[str, ...]) -> list[BenchmarkResults]:
    names = list(dict.fromkeys(item.benchmark for item in items))
    for name in wanted:
        if name not in names:
            raise UnknownNameError("benchmark in the results", name, names)
    chosen = [item for item in items if item.files and (not wanted or item.benchmark in wanted)]
    if not chosen:
        sought = "neither output*.jsonl, nor eval-results/<benchmark>/output*.jsonl."
        raise DataError(f"{folder} has no finished results: {advice_to_name_a_run(folder) or sought}")
    return chosen


def sample_rows(item: BenchmarkResults, notes: list[str]) -> Iterator[SampleRow]:
    """Yield the samples of a benchmark, file by file, in constant memory. Never raises for what lies in the files:
    `notes` gets what is missing."""
    template = prompt_text(read_facts(item.folder))
    try:
        for judged in read_rows_with_verdicts(item, notes):
            sample = judged.sample
            output = next(file for file, seed in zip(item.files, item.seeds, strict=True) if seed == judged.seed)
            yield SampleRow(
                output,
                judged.seed,
                judged.place,
                judged.row,
                sample.outcome,
                sample.cause,
                sample.score,
                template,
            )
    except UserError as error:
        notes.append(f"{item.benchmark}: read without verdicts. {error.message}")
        for file, seed in zip(item.files, item.seeds, strict=True):
            records = BenchmarkRecords(benchmark=item.benchmark, folder=item.folder, files=item.files)
            for row in read_whole_rows(item, file, records):
                yield SampleRow(file, seed, records.place, row, "ungraded", None, None, template)
