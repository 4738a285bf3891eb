# SPDX-License-Identifier: Apache-2.0
"""Which results lie in the given folders: runs, their benchmarks, their finished output files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import DataError
from newskills.base.terminal import counted, listed
from newskills.view.discovery import BenchmarkFiles, Run, discover_all
from newskills.view.filters.columns import SampleColumn
from newskills.view.folders import Folders
from newskills.view.scans.files import ScannedFile, scan_columns

FolderPath = str | PathLike[str]


class ResultFolders(NamedTuple):
    """The results below some folders; `notes`: what is left out, in sentences."""

    folders: Folders
    runs: list[Run]
    notes: list[str]

    def benchmarks(self) -> Iterator[tuple[Run, BenchmarkFiles]]:
        """Yield the benchmarks of all runs, in the order of their names."""
        for run in self.runs:
            for name in sorted(run.benchmarks):
                yield run, run.benchmarks[name]

    def filter_columns(self) -> Mapping[str, SampleColumn]:
        """Return the names that filters may have: columns of samples, and scanners that have results."""
        return scan_columns(
            ScannedFile(run.id, benchmark.name, file.seed, file.path)
            for run, benchmark in self.benchmarks()
            for file in benchmark.files
        )


def find_results(paths: FolderPath | Sequence[FolderPath]) -> ResultFolders:
    """Find the results in one folder, or several. Raises DataError where a folder is missing, or has none."""
    if isinstance(paths, str | PathLike):
        paths = [paths]
    places = [Path(path).expanduser() for path in paths]
    if not places:
        raise DataError("No folder of results was named.")
    folders = Folders(places)
    catalog = discover_all(folders)
    runs = sorted(catalog.runs.values(), key=lambda run: run.id)
    if not runs:
        raise DataError(
            f"{listed([str(place) for place in places], 3)} has no results: no output*.jsonl at any depth.",
            hint="Results of other tools: ns import",
        )
    notes = list(catalog.notes)
    unfinished = [
        f"{run.id} ({benchmark.name})"
        for run in runs
        for benchmark in run.benchmarks.values()
        if any(file.unfinished for file in benchmark.files)
    ]
    if unfinished:
        notes.append(
            f"{counted(len(unfinished), 'benchmark')} are still running or were interrupted, and their samples are "
            f"left out: {listed(unfinished, 3)}."
        )
    return ResultFolders(folders, runs, notes)
