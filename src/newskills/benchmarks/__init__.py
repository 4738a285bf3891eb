# SPDX-License-Identifier: Apache-2.0
"""Benchmarks by name: built-in (one file each), from entry points, from paths, and from folders of other packages.

Listing reads a generated catalog and imports no benchmark. `-` and `_` are the same in names, case does not
matter, aliases work everywhere, `group.member` names a sub-benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.registry import fold, load_attr, load_module

if TYPE_CHECKING:  # listing needs no records, and they cost it 20 ms
    from newskills.base.benchmark import Benchmark

GROUP = "newskills.benchmarks"
Extra = str | Path | Mapping[str, str]


class Entry(NamedTuple):
    """What the catalog knows of a benchmark; `items` = rows of the default split, 0 = not counted."""

    name: str
    aliases: tuple[str, ...]
    category: str
    module: str
    title: str
    split: str
    items: int
    prompt: str
    grader: str
    metric: str
    licence: str
    requires: str
    needs_sandbox: bool


def list_benchmarks(category: str | None = None) -> list[Entry]:
    """The built-in benchmarks, by category and name. Raises UnknownNameError for an unknown category."""
    entries = list(_catalog())
    if category is None:
        return entries
    chosen = [entry for entry in entries if fold(entry.category) == fold(category)]
    if not chosen:
        raise UnknownNameError("category", category, {entry.category for entry in entries})
    return chosen


def get_benchmark(name: str, extra: Extra | None = None) -> Benchmark:
    """The benchmark called `name`: a name or alias, `file.py`, `folder`, `module::attr`.

    `extra` adds benchmarks: a mapping name → folder, the same as JSON text or as the path of a JSON file.
    `NEMO_SKILLS_EXTRA_BENCHMARK_MAP` and `NEMO_SKILLS_EXTRA_DATASETS` are honoured. Raises UnknownNameError,
    ConfigError for a broken file or a name that stands for two benchmarks.
    """
    if "::" in name:
        return _as_benchmark(load_attr(name, "benchmark"), name)
    if name.endswith(".py"):
        return _as_benchmark(getattr(load_module(name, "benchmark"), "BENCHMARK", None), name)
    if "/" in name:
        from newskills.benchmarks.external import load_folder

        return load_folder(Path(name).expanduser())
    places = list(_places(name, extra))
    if not places:
        known = [known for entry in _catalog() for known in (entry.name, *entry.aliases)]
        raise UnknownNameError("benchmark", name, known, hint="All of them: ns list benchmarks")
    if len(places) > 1:
        raise ConfigError(
            f"The name '{name}' stands for several benchmarks: {' and '.join(where for where, _ in places)}.",
            hint="Rename one, or name it by its path.",
        )
    _, found = places[0]
    return found.load() if isinstance(found, _Built) else found


class _Built(NamedTuple):
    entry: Entry

    def load(self) -> Benchmark:
        module = load_module(self.entry.module, "benchmark")
        own: Benchmark | None = getattr(module, "BENCHMARK", None)
        several = [own] if own is not None else module.BENCHMARKS
        return next(benchmark for benchmark in several if benchmark.name == self.entry.name)


def _places(name: str, extra: Extra | None) -> Iterator[tuple[str, _Built | Benchmark]]:
    """Every place that knows `name`."""
    for entry in _catalog():
        if fold(name) in map(fold, (entry.name, *entry.aliases)):
            yield f"the built-in '{entry.name}'", _Built(entry)
    from newskills.benchmarks.external import extra_folders, installed, load_folder

    for point in installed(GROUP, name):
        yield f"the entry point {point.value}", _as_benchmark(point.load(), point.value)
    for folder in extra_folders(name, extra):
        yield f"the folder {folder}", load_folder(folder, name)


def _catalog() -> Iterator[Entry]:
    from newskills.benchmarks.catalog import CATALOG

    return map(Entry._make, CATALOG)


def _as_benchmark(found: object, where: str) -> Benchmark:
    from newskills.base.benchmark import Benchmark

    if not isinstance(found, Benchmark):
        raise ConfigError(
            f"{where} is no benchmark: a newskills.base.benchmark.Benchmark is expected, "
            f"{'named BENCHMARK' if found is None else f'not {type(found).__name__}'}."
        )
    return found
