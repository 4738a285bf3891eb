# SPDX-License-Identifier: Apache-2.0
"""Writes `catalog.jsonl` from the benchmark files: `python -m newskills.benchmarks.generate_catalog`.

The catalog is what `ns list` and name look-up read, so that neither imports any benchmark.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator

import msgspec

import newskills.benchmarks
from newskills.base.benchmark import Benchmark, Group
from newskills.base.errors import ConfigError
from newskills.base.registry import fold
from newskills.benchmarks import CatalogEntry
from newskills.benchmarks.evidence import evidence_of
from newskills.benchmarks.listing import CATALOG
from newskills.benchmarks.lookup import exported_benchmarks
from newskills.models.kinds import MODELS
from newskills.tools import TOOLS
from newskills.tools.web_search import SearchApi

NO_CATEGORIES = tuple(
    f"newskills.benchmarks.{room}" for room in ("downloads", "files", "interactive", "terminal_tasks")
)


def built_in() -> Iterator[tuple[str, Benchmark]]:
    """Yield (module, benchmark) of every file in the category packages, by category and name."""
    return ((module, item) for module, item in _exported_items() if isinstance(item, Benchmark))


def built_in_groups() -> Iterator[tuple[str, Group]]:
    """Yield (module, group) of every file in the category packages, by category and name."""
    return ((module, item) for module, item in _exported_items() if isinstance(item, Group))


def _exported_items() -> list[tuple[str, Benchmark | Group]]:
    exported_objects = []
    for package in pkgutil.iter_modules(newskills.benchmarks.__path__, "newskills.benchmarks."):
        if not package.ispkg or package.name in NO_CATEGORIES:
            continue
        folder = importlib.import_module(package.name).__path__
        for info in pkgutil.iter_modules(folder, f"{package.name}."):
            exported_objects += [
                (info.name, item) for item in exported_benchmarks(importlib.import_module(info.name))
            ]
    return sorted(exported_objects, key=lambda pair: (pair[1].category, fold(pair[1].name)))


def catalog_text() -> str:
    """Return the text of `catalog.jsonl`, one entry a line. Raises ConfigError where two benchmarks share a name."""
    lines, owners = [], dict[str, str]()
    for module, item in _exported_items():
        for name in dict.fromkeys(map(fold, (item.name, *item.aliases))):
            if owners.setdefault(name, module) != module:
                raise ConfigError(f"{module} and {owners[name]} both call a benchmark '{name}'.")
        entry = _benchmark_entry(module, item) if isinstance(item, Benchmark) else _group_entry(module, item)
        lines.append(msgspec.json.encode(entry).decode() + "\n")
    return "".join(lines)


def _benchmark_entry(module: str, benchmark: Benchmark) -> CatalogEntry:
    return CatalogEntry(
        name=benchmark.name,
        aliases=benchmark.aliases,
        category=benchmark.category,
        module=module,
        title=benchmark.title,
        split=benchmark.split,
        items=benchmark.items.get(benchmark.split, 0),
        prompt=benchmark.prompt,
        grader=benchmark.grader,
        metric=benchmark.metric,
        licence=benchmark.licence,
        requires=benchmark.requires,
        needs_sandbox=benchmark.needs_sandbox,
        verified=not benchmark.unverified,
        evidence=bool(evidence_of(benchmark.name)),
        data=benchmark.data,
        judge=benchmark.judge.model if benchmark.judge else None,
        keys=tuple(dict.fromkeys(_key_variables(benchmark))),
    )


def _key_variables(benchmark: Benchmark) -> Iterator[str]:
    """Yield the variables of the environment that hold a key: for its rows, its usual judge, its tools, its
    service."""
    if any(source.gated for source in benchmark.sources):
        yield "HF_TOKEN"
    settings = [benchmark.defaults]
    if (judge := benchmark.judge) is not None:
        settings.append(judge.defaults)
        if judge.model:
            yield from MODELS.properties(judge.server_type).keys[:1]
    for tools in (defaults.get("tool_modules", ()) for defaults in settings):
        for tool in tools:
            search = getattr(TOOLS.get(tool), "engine", None) if tool in TOOLS else None
            if isinstance(search, SearchApi):
                yield search.key_variable
    if benchmark.grader == "critpt":
        yield "ARTIFICIAL_ANALYSIS_API_KEY"


def _group_entry(module: str, group: Group) -> CatalogEntry:
    return CatalogEntry(
        name=group.name,
        aliases=group.aliases,
        category=group.category,
        module=module,
        title=group.title,
        split="",
        items=0,
        prompt="",
        grader="",
        metric="",
        licence="",
        requires="",
        needs_sandbox=False,
        members=tuple(group.members),
    )


if __name__ == "__main__":
    CATALOG.write_text(catalog_text(), encoding="utf-8")
    sys.stdout.write(f"{CATALOG}\n")
