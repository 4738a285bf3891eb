# SPDX-License-Identifier: Apache-2.0
"""Where the output files of benchmarks lie in a folder of results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import DataError

RESULTS = "eval-results"
SEEDED = re.compile(r"output-rs(\d+)\.jsonl")
SEEDLESS = ("output.jsonl", "output-greedy.jsonl")
NOT_BENCHMARKS = ("tmp-eval-results", "summarized-results", "summarize_robustness")


class Found(NamedTuple):
    """A folder of one benchmark; without files it is only worth a note."""

    benchmark: str
    folder: Path
    files: tuple[Path, ...]


def discover(results_dir: Path) -> list[Found]:
    """Benchmarks by name: the folder itself, else those in its eval-results, else those in it.

    A folder without output files whose sub-folders have some is a group; its members are `group.member`. Raises
    DataError for a missing folder, and for a benchmark with both seeded and seedless outputs.
    """
    if not results_dir.is_dir():
        raise DataError(f"There is no folder {results_dir}.")
    here = results_dir.resolve()
    if files := output_files(here):
        in_group = here.parent.parent.name == RESULTS
        return [Found(_member(here.parent.name, here.name) if in_group else here.name, results_dir, files)]
    root = results_dir / RESULTS
    found = []
    for folder in _folders(root if root.is_dir() else results_dir):
        files = output_files(folder)
        members = [] if files else [(m, f) for m in _folders(folder) if (f := output_files(m))]
        found += [Found(_member(folder.name, m.name), m, f) for m, f in members] or [
            Found(folder.name, folder, files)
        ]
    return found


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
