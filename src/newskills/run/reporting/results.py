# SPDX-License-Identifier: Apache-2.0
"""Where the output files of benchmarks lie in a folder of results.

A file that was never merged counts by its chunks, once they are all there; its own name stands for them, and `parts`
tells what to read. Of `output[-rsN]_chunk_K.jsonl` an exit record must say that these are all;
`output[-rsN]-chunkK.jsonl` is what NeMo-Skills calls them where nothing says how many there are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import bounded_lines, decode_row, no_folder, open_for_reading
from newskills.run.records.completeness import expected_rows, row_count

RESULTS_FOLDER = "eval-results"
SEEDED_NAME = re.compile(r"output-rs(\d+)\.jsonl")
SEEDLESS_NAMES = ("output.jsonl", "output-greedy.jsonl")
_OWN_CHUNK = "_chunk_"
_CHUNK = re.compile(r"(output(?:-rs\d+|-greedy)?)(?:_chunk_|-chunk)(\d+)\.jsonl")
_MAX_DEPTH = 4
_MOST_NAMED_RUNS = 5
SCANS_FOLDER = "scans"
"""Folder beside records with what scanners said of them."""
NOT_BENCHMARKS = ("tmp-eval-results", "summarized-results", "summarize_robustness", SCANS_FOLDER)


class BenchmarkResults(NamedTuple):
    """A folder of one benchmark; without files it is only worth a note. `run`: where its run lies below the folder that
    was searched; empty for the run of that folder itself."""

    benchmark: str
    folder: Path
    files: tuple[Path, ...]
    run: str = ""

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """The seed of each file; None for the only one."""
        return tuple(map(seed_of, self.files))


def list_results(results_dir: Path) -> list[BenchmarkResults]:
    """Return the benchmarks by name: the folder itself, else those in its eval-results, else those in it.

    A folder without output files whose sub-folders have some (in eval-results at any depth) is a group; its members
    are `group.member`. Raises DataError for a missing folder, and for a benchmark with both seeded and seedless
    outputs.
    """
    if not results_dir.is_dir():
        raise no_folder(results_dir)
    here = results_dir.resolve()
    if files := output_files(here):
        return [BenchmarkResults(benchmark_name(here), results_dir, files)]
    parent, depth = results_dir / RESULTS_FOLDER, _MAX_DEPTH
    if not parent.is_dir():
        parent, depth = results_dir, 1
    tops = _sorted_folders(parent)
    return [
        result
        for folder in tops
        for result in list(_benchmarks_within(folder, folder.name, depth))
        or [BenchmarkResults(folder.name, folder, ())]
    ]


def advice_to_name_a_run(folder: Path) -> str:
    """Return a sentence that names the runs within a folder without results of its own; empty where there are none."""
    patterns = (f"*/{RESULTS_FOLDER}", f"*/*/{RESULTS_FOLDER}")
    runs = sorted(str(path.parent) for pattern in patterns for path in folder.glob(pattern))
    if not runs:
        return ""
    more = ", …" if len(runs) > _MOST_NAMED_RUNS else ""
    return f"Name a run in it: {', '.join(runs[:_MOST_NAMED_RUNS])}{more}."


def benchmark_name(folder: Path) -> str:
    """Return the name of the benchmark whose results lie there: `group.member` below a group's folder."""
    steps = folder.parts
    if RESULTS_FOLDER not in steps[:-1]:
        return folder.name
    after = len(steps) - steps[::-1].index(RESULTS_FOLDER)
    return reduce(_member_name, steps[after:])


def _benchmarks_within(folder: Path, name: str, depth: int) -> Iterator[BenchmarkResults]:
    """Yield the benchmark that lies in `folder`, or those at most `depth` below it."""
    if files := output_files(folder):
        yield BenchmarkResults(name, folder, files)
    elif depth:
        for member in _sorted_folders(folder):
            yield from _benchmarks_within(member, _member_name(name, member.name), depth - 1)


def seed_of(output: Path) -> int | None:
    """Return the seed of an output file; None for the only one."""
    match = SEEDED_NAME.fullmatch(output.name)
    if match:
        return int(match[1])
    return None


def file_parts(output: Path) -> tuple[Path, ...]:
    """Return the file itself, or, where there is none, its chunks in order."""
    if output.exists():
        return (output,)
    return tuple(chunk_files(output)) or (output,)


def read_output(output: Path) -> Iterator[Row]:
    """Yield the records of a file or of its chunks, without those that are too long to be read. Raises DataError."""
    for path in file_parts(output):
        with open_for_reading(path) as file:
            for number, line in enumerate(bounded_lines(file), 1):
                if line is not None and not line.isspace():
                    yield decode_row(line, path, number)


def chunk_files(output: Path) -> list[Path]:
    """Return the chunks of `output` in order. Raises DataError where one between them is missing, or is there twice."""
    names = os.listdir(output.parent) if output.parent.is_dir() else []
    return _in_order(output, _chunk_files(output.parent, names, output.stem).get(output.stem, []))


def _in_order(output: Path, numbered: list[tuple[int, Path]]) -> list[Path]:
    chunks = sorted(numbered)
    numbers = [k for k, _ in chunks]
    if numbers != list(range(len(numbers))):
        names = ", ".join(path.name for _, path in chunks)
        raise DataError(
            f"The chunks of {output} are not numbered from 0 without gaps: {names}.",
            hint="Copy the missing chunks here, or move chunks of another run away.",
        )
    return [path for _, path in chunks]


def _chunk_files(folder: Path, names: Sequence[str], stem: str = "output") -> dict[str, list[tuple[int, Path]]]:
    """Return, for each merged file's name without its ending, the number and path of its chunks among the `names`
    in `folder` that begin with `stem`."""
    chunks: dict[str, list[tuple[int, Path]]] = {}
    for name in names:
        if name.startswith(stem) and (match := _CHUNK.fullmatch(name)):
            chunks.setdefault(match[1], []).append((int(match[2]), folder / name))
    return chunks


def _unmerged_files(folder: Path) -> Iterator[Path]:
    """Yield files that do not exist, but all of whose chunks do."""
    names = os.listdir(folder)
    logs = [name for name in names if name.endswith("-async")]
    for stem, numbered in _chunk_files(folder, names).items():
        output = folder / f"{stem}.jsonl"
        if output.exists() or any(name.startswith(stem) for name in logs):
            continue
        chunks, expected = _in_order(output, numbered), expected_rows(output)
        named = not any(_OWN_CHUNK in path.name for path in chunks)
        is_whole = named if expected is None else sum(map(row_count, chunks)) >= expected
        if is_whole:
            yield output


def output_files(folder: Path) -> tuple[Path, ...]:
    """Return the seedless output, or the seeded ones in numerical order. Raises DataError where there are both."""
    there = {path for path in folder.iterdir() if path.suffix == ".jsonl"} | set(_unmerged_files(folder))
    seeded = [(int(match[1]), path) for path in there if (match := SEEDED_NAME.fullmatch(path.name))]
    seedless = [folder / name for name in SEEDLESS_NAMES if folder / name in there]
    if seedless and (seeded or len(seedless) > 1):
        others = [path.name for _, path in sorted(seeded)] or [seedless[1].name]
        raise DataError(
            f"{folder} has both {seedless[0].name} and {others[0]}: these are different runs.",
            hint="Move one kind of output away.",
        )
    return tuple(seedless) or tuple(path for _, path in sorted(seeded))


def _member_name(group: str, name: str) -> str:
    if name.startswith(f"{group}."):
        return name
    return f"{group}.{name}"


def _sorted_folders(parent: Path) -> Iterator[Path]:
    for folder in sorted(parent.iterdir()):
        name = folder.name
        if folder.is_dir() and not name.startswith(".") and "-logs" not in name and name not in NOT_BENCHMARKS:
            yield folder
