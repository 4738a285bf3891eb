# SPDX-License-Identifier: Apache-2.0
"""Where the output files of benchmarks lie in a folder of results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import DataError

RESULTS = "eval-results"
SEEDED = re.compile(r"output-rs(\d+)\.jsonl")
SEEDLESS = ("output.jsonl", "output-greedy.jsonl")
_DEEPEST = 4
NOT_BENCHMARKS = ("tmp-eval-results", "summarized-results", "summarize_robustness")


class Found(NamedTuple):
    """A folder of one benchmark; without files it is only worth a note."""

    benchmark: str
    folder: Path
    files: tuple[Path, ...]


def discover(results_dir: Path) -> list[Found]:
    """Benchmarks by name: the folder itself, else those in its eval-results, else those in it.

    A folder without output files whose sub-folders have some (in eval-results at any depth) is a group; its members
    are `group.member`. Raises DataError for a missing folder, and for a benchmark with both seeded and seedless
    outputs.
    """
    if not results_dir.is_dir():
        raise DataError(f"There is no folder {results_dir}.")
    here = results_dir.resolve()
    if files := output_files(here):
        return [Found(_name_of(here), results_dir, files)]
    root = results_dir / RESULTS
    tops = _folders(root if root.is_dir() else results_dir)
    depth = _DEEPEST if root.is_dir() else 1
    return [
        found
        for folder in tops
        for found in list(_within(folder, folder.name, depth)) or [Found(folder.name, folder, ())]
    ]


def _name_of(folder: Path) -> str:
    """Of the benchmark whose results lie there: `group.member` below a group's folder."""
    steps = folder.parts
    if RESULTS not in steps[:-1]:
        return folder.name
    after = len(steps) - steps[::-1].index(RESULTS)
    return reduce(_member, steps[after:])


def _within(folder: Path, name: str, depth: int) -> Iterator[Found]:
    """The benchmark that lies in `folder`, or those at most `depth` below it."""
    if files := output_files(folder):
        yield Found(name, folder, files)
    elif depth:
        for member in _folders(folder):
            yield from _within(member, _member(name, member.name), depth - 1)


def output_files(folder: Path) -> tuple[Path, ...]:
    """The seedless output, or the seeded ones in numerical order. Raises DataError where there are both."""
    seeded = [(int(match[1]), path) for path in folder.iterdir() if (match := SEEDED.fullmatch(path.name))]
    seedless = [folder / name for name in SEEDLESS if (folder / name).is_file()]
    if seedless and (seeded or len(seedless) > 1):
        others = [path.name for _, path in sorted(seeded)] or [seedless[1].name]
        raise DataError(
            f"{folder} has both {seedless[0].name} and {others[0]}: these are different runs.",
            hint="Move one kind of output away.",
        )
    return tuple(seedless) or tuple(path for _, path in sorted(seeded))


def _member(group: str, name: str) -> str:
    return name if name.startswith(f"{group}.") else f"{group}.{name}"


def _folders(parent: Path) -> Iterator[Path]:
    for folder in sorted(parent.iterdir()):
        name = folder.name
        if folder.is_dir() and not name.startswith(".") and "-logs" not in name and name not in NOT_BENCHMARKS:
            yield folder
