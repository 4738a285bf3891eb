# SPDX-License-Identifier: Apache-2.0
"""What the prepared rows of a benchmark depend on: sources, mapping, files of this machine, newskills itself."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import msgspec

from newskills._version import __version__
from newskills.base.benchmark import Benchmark, Source
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.downloads.sources import local_files
from newskills.benchmarks.files.described import DescribedBenchmark
from newskills.benchmarks.lm_eval.benchmark import HarnessBenchmark


def home_of(benchmark: Benchmark) -> Path:
    """Return the folder of the file in which the mapping is defined, or that of the process where there is no
    mapping; of one that a file describes, that of the file."""
    if isinstance(benchmark, DescribedBenchmark):
        return Path(benchmark.home)
    maker = benchmark.row or next(iter(benchmark.variants.values()), benchmark.join)
    file = inspect.getsourcefile(inspect.unwrap(getattr(maker, "func", maker))) if maker else None
    if file:
        return Path(file).resolve().parent
    return Path()


def _local_files(source: Source, folder: Path) -> list[Path]:
    try:
        return list(local_files(source, folder).values())
    except DataError:
        return []


def recipe_of(benchmark: Benchmark, split: str) -> str:
    """Return a hash that changes whenever the prepared rows might: by sources, version, the file with the mapping,
    newskills itself."""
    row = benchmark.variants.get(split, benchmark.row)
    described = isinstance(benchmark, DescribedBenchmark)
    if described:
        makers = []
    else:
        makers = [maker for maker in (row, benchmark.join, benchmark.generate_rows) if maker]
    files = [file for maker in makers for file in _written_in(maker)]
    sources = [source for source in benchmark.sources if source.split == split]
    chosen = [benchmark.chosen, benchmark.keep] if benchmark.chosen or benchmark.keep else []
    parts = [
        msgspec.json.encode(
            [
                benchmark.version,
                __version__,
                sources,
                inputs_of(benchmark, split),
                generator_of(benchmark),
                *chosen,
            ]
        )
    ]
    parts += [Path(file).read_bytes() for file in files]
    return hashlib.blake2b(b"\0".join(parts), digest_size=8).hexdigest()


def inputs_of(benchmark: Benchmark, split: str) -> str:
    """Return a hash of names, sizes and times of the files of this machine that rows are made from; empty: there are
    none, or not here."""
    home = home_of(benchmark)
    sources = [source for source in benchmark.sources if source.split == split and source.path]
    files = [file for source in sources for file in _local_files(source, home)]
    if isinstance(benchmark, HarnessBenchmark):
        files += [path for path in map(Path, benchmark.inputs) if path.is_file()]
    if benchmark.reads:
        place = Path(benchmark.reads)
        below = [place] if place.is_file() else list(place.rglob("*"))
        files += sorted(file for file in below if file.is_file() and "__pycache__" not in file.parts)
    if isinstance(benchmark, DescribedBenchmark):
        # Relative, since jobs may see the folder elsewhere; with the description, since what rows hold is said there.
        names = [os.path.relpath(file, home) for file in files]
    else:
        names = list(map(str, files))
    states: list[Any] = [
        (name, state.st_size, state.st_mtime_ns)
        for name, file in zip(names, files, strict=True)
        for state in [file.stat()]
    ]
    if isinstance(benchmark, DescribedBenchmark):
        states.append(benchmark.settings().decode())
    if states:
        return hashlib.blake2b(msgspec.json.encode(states), digest_size=8).hexdigest()
    return ""


def _written_in(maker: Any) -> Iterator[str]:
    """Yield the file of a function; for one with arguments set, those of its functions, too."""
    if isinstance(maker, partial):
        for part in (maker.func, *filter(callable, maker.args)):
            yield from _written_in(part)
    elif file := inspect.getsourcefile(inspect.unwrap(maker)):
        yield file


def generator_of(benchmark: Benchmark) -> Row:
    if not benchmark.generator:
        return {}
    try:
        return {"generator": benchmark.generator, "version": installed_version(benchmark.generator)}
    except PackageNotFoundError:
        return {"generator": benchmark.generator, "version": ""}
