# SPDX-License-Identifier: Apache-2.0
"""How large the house is: files and lines of Python in each room, committed ones only."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from bench.measure import ROOT, BenchError, Line, Options

PARTS = {
    "src": 105_000,
    "libs": None,
    "apps": None,
    "tests": 100_000,
    "bench": None,
    "docs": None,
    "recipes": None,
}
"""Folders of the repository, and how many lines each should have at most."""


def bench(_options: Options) -> Iterator[Line]:
    files, lines = counts()
    for part, limit in PARTS.items():
        rooms = [room for room in lines if room.split("/")[0] == part]
        if not rooms:
            continue
        total = sum(lines[room] for room in rooms)
        line = Line(
            bench="lines", what=f"{part}: {sum(files[room] for room in rooms):,} files", ours=total, unit="lines"
        )
        if limit is not None:
            line.target, line.met = f"≤ {limit:,}", total <= limit
        yield line
        if part == "src":
            for room in sorted(rooms, key=lambda room: -lines[room]):
                yield Line(bench="lines", what=f"{room}: {files[room]} files", ours=lines[room], unit="lines")


def counts() -> tuple[Counter[str], Counter[str]]:
    """Return files and lines of each room: `src/newskills/ROOM`, else the first folder. Raises BenchError."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        raise BenchError(f"git does not list the files of {ROOT}: {listed.stderr.strip()}")
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_symlink():
            continue
        room = room_of(name)
        files[room] += 1
        lines[room] += len((ROOT / name).read_bytes().splitlines())
    return files, lines


def room_of(name: str) -> str:
    parts = PurePath(name).parts
    if parts[0] == "src":
        return "/".join(parts[: min(3, len(parts) - 1)])
    return parts[0]
