# SPDX-License-Identifier: Apache-2.0
"""Name → benchmark or group, wherever it is defined."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from msgspec.structs import replace

from newskills.base.benchmark import Benchmark, Group, Judge
from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.registry import fold, load_attr, load_module
from newskills.benchmarks.external import data_folders, entry_points_named, extra_folders, load_folder
from newskills.benchmarks.files.names import is_described, is_file_name
from newskills.benchmarks.interactive.environments import interactive_benchmark
from newskills.benchmarks.listing import ENTRY_POINTS, BenchmarkPlaces, CatalogEntry, Extra, catalog_entries
from newskills.benchmarks.lm_eval.benchmark import HarnessBenchmark, HarnessGroup
from newskills.benchmarks.lm_eval.names import is_harness_task


def get_benchmark(name: str, extra: Extra | None = None) -> Benchmark:
    """Return the benchmark called `name`: a name or alias, `group.member`, `file.py`, `file.yaml`, a file of
    questions (`file.csv`), `folder`, `module::attr`, `verifiers:environment`, `openenv:address`, `lm-eval:task`.

    `extra` adds benchmarks: a mapping name → folder, the same as JSON text or as the path of a JSON file, or `Places`.
    `NEMO_SKILLS_EXTRA_BENCHMARK_MAP` and `NEMO_SKILLS_EXTRA_DATASETS` are honoured. Raises UnknownNameError,
    ConfigError for a group, a broken file, or a name that stands for two benchmarks.
    """
    entry = _find_benchmark(name, extra)
    if isinstance(entry, Benchmark):
        return entry
    members = [f"{entry.name}.{entry.short(member)}" for member in entry.members]
    raise ConfigError(f"{name} is a group of {len(members)} benchmarks: {', '.join(members)}.")


def get_group(name: str, extra: Extra | None = None) -> Group | None:
    """Return the group called `name`, or None where `name` is none. Raises ConfigError as `get_benchmark`."""
    if is_harness_task(name):
        made = _load_harness(name, extra)
        if isinstance(made, HarnessGroup):
            return made
        return None
    try:
        entry = _find_benchmark(name, extra)
    except UnknownNameError:
        return None
    if isinstance(entry, Group):
        return entry
    return None


def expand_benchmarks(name: str, extra: Extra | None = None) -> list[Benchmark]:
    """Return the benchmark called `name`, the members of the group called so, or all benchmarks of a file without a
    group.

    Raises as `get_benchmark`.
    """
    if name.endswith(".py") and len(all_there := exported_benchmarks(load_module(name, "benchmark"))) > 1:
        benchmarks = [item for item in all_there if isinstance(item, Benchmark)]
        if len(benchmarks) == len(all_there):
            return benchmarks
    if is_harness_task(name) and isinstance(several := _load_harness(name, extra), list):
        return list(several)
    entry = _find_benchmark(name, extra)
    if isinstance(entry, Group):
        return [member_of(entry, member, extra) for member in entry.members]
    return [entry]


def place_of(name: str, extra: Extra | None = None) -> str:
    """Return the path (with `::attr`, where one is needed) of what the user defines as `name`; empty where
    newskills has it."""
    if isinstance(extra, BenchmarkPlaces) and name in extra.objects:
        return ""
    if "::" in name or is_file_name(name) or is_harness_task(name):
        return name
    folders = extra_folders(name, extra)
    if not folders and not list(_places_of_name(name, extra)):
        folders = data_folders(name, extra)
    if folders:
        return str(folders[0])
    if "/" in name:
        return name
    return ""


def member_of(group: Group, member: str, extra: Extra | None = None) -> Benchmark:
    """Return `member` as it is evaluated in `group`: under the name `group.member`, with what the group says
    differently.

    Raises UnknownNameError, ConfigError for a field that benchmarks do not have.
    """
    if isinstance(group, HarnessGroup):
        own: Benchmark = group.tasks[member]
    else:
        own = _sibling_benchmark(group, member) or get_benchmark(_from_home(group, member), extra)
    changes = group.members[member]
    if unknown := sorted(set(changes) - set(Benchmark.__struct_fields__)):
        raise ConfigError(f"The group {group.name} sets '{unknown[0]}' of {member}, which benchmarks do not have.")
    name = f"{group.name}.{group.short(member)}"
    data = own.data or ("" if own.name == name else own.name)
    changed = {field: _laid_over(getattr(own, field), value) for field, value in changes.items()}
    return replace(own, **{"name": name, "aliases": (), "data": data, **changed})


def _sibling_benchmark(group: Group, member: str) -> Benchmark | None:
    """Return the benchmark called `member` beside the group; None where there is none."""
    if not group.home:
        return None
    for sibling in exported_benchmarks(load_module(group.home, "benchmark")):
        if isinstance(sibling, Benchmark) and fold(sibling.name) == fold(member):
            return sibling
    return None


def _from_home(group: Group, member: str) -> str:
    """Return `member` as the group's file means it: a path begins at the file's own folder."""
    there = Path(group.home).expanduser().parent / member
    if group.home and "/" in member and Path(str(there).partition("::")[0]).exists():
        return str(there)
    return member


def _laid_over(own: Any, value: Any) -> Any:
    """Replace `own` by `value`; of mappings, and of the fields of a judge, only what it names."""
    if not isinstance(value, dict):
        return value
    if isinstance(own, dict):
        return {**own, **value}
    judge = own if isinstance(own, Judge) else Judge()
    return replace(judge, **{field: _laid_over(getattr(judge, field, None), new) for field, new in value.items()})


def _find_benchmark(name: str, extra: Extra | None) -> Benchmark | Group:
    if isinstance(extra, BenchmarkPlaces) and name in extra.objects:
        return extra.objects[name]
    if is_harness_task(name):
        made = _load_harness(name, extra)
        if isinstance(made, HarnessGroup):
            return made
        if len(made) == 1:
            return made[0]
        raise ConfigError(
            f"{name} stands for {len(made)} tasks: {', '.join(task.origin.full_name for task in made)}."
        )
    if "::" in name:
        return _named_there(name)
    if name.endswith(".py"):
        return _from_file(name)
    if is_described(name):
        from newskills.benchmarks.files.load import load_described  # most names are of other kinds

        return load_described(name, extra.words if isinstance(extra, BenchmarkPlaces) else None)
    if (interactive := interactive_benchmark(name)) is not None:
        return interactive
    places = list(_places_of_name(name, extra))
    if "/" in name and not places:
        return load_folder(Path(name).expanduser())
    places = places or list(_member_places(name, extra)) or list(_data_places(name, extra))
    if not places:
        names = [name for entry in catalog_entries() for name in (entry.name, *entry.aliases)]
        hint = "All of them: ns list benchmarks"
        if "," in name:
            hint = f"Separate several names by blanks: {' '.join(name.split(','))}"
        raise UnknownNameError("benchmark", name, names, hint=hint)
    if len(places) > 1:
        raise ConfigError(
            f"The name '{name}' stands for several benchmarks: {' and '.join(where for where, _ in places)}.",
            hint="Rename one, or name it by its path.",
        )
    _, match = places[0]
    if isinstance(match, _CatalogItem):
        return match.load()
    return match


def _load_harness(name: str, extra: Extra | None) -> list[HarnessBenchmark] | HarnessGroup:
    from newskills.benchmarks.lm_eval.load import load_harness  # most names are of other kinds

    return load_harness(name, extra.wishes if isinstance(extra, BenchmarkPlaces) else None)


class _CatalogItem(NamedTuple):
    entry: CatalogEntry

    def load(self) -> Benchmark | Group:
        return next(
            item
            for item in exported_benchmarks(load_module(self.entry.module, "benchmark"))
            if item.name == self.entry.name
        )


def exported_benchmarks(module: ModuleType) -> list[Benchmark | Group]:
    """Return what a benchmark file defines: BENCHMARK or BENCHMARKS, GROUP or GROUPS."""
    exported_objects = [getattr(module, name) for name in ("BENCHMARK", "GROUP") if hasattr(module, name)]
    return [*exported_objects, *getattr(module, "BENCHMARKS", ()), *getattr(module, "GROUPS", ())]


def _named_there(name: str) -> Benchmark | Group:
    """Load `where::NAME`: a variable, or the name of one of its benchmarks."""
    where, _, wanted = name.partition("::")
    named = [
        item for item in exported_benchmarks(load_module(where, "benchmark")) if fold(item.name) == fold(wanted)
    ]
    if named:
        return _as_benchmark(named[0], name)
    return _as_benchmark(load_attr(name, "benchmark"), name)


def _from_file(name: str) -> Benchmark | Group:
    exported_objects = exported_benchmarks(load_module(name, "benchmark"))
    groups = [item for item in exported_objects if isinstance(item, Group)]
    if len(exported_objects) > 1 and len(groups) != 1:
        names = ", ".join(str(getattr(item, "name", item)) for item in exported_objects)
        raise ConfigError(f"{name} has several benchmarks: {names}.", hint="Name one: file.py::NAME.")
    return _as_benchmark((groups or exported_objects or [None])[0], name)


def _places_of_name(name: str, extra: Extra | None) -> Iterator[tuple[str, _CatalogItem | Benchmark | Group]]:
    """Yield every place that knows `name`."""
    for entry in catalog_entries():
        if fold(name) in map(fold, (entry.name, *entry.aliases)):
            yield f"the built-in '{entry.name}'", _CatalogItem(entry)
    for point in entry_points_named(ENTRY_POINTS, name):
        yield f"the entry point {point.value}", _as_benchmark(point.load(), point.value)
    for folder in extra_folders(name, extra):
        yield f"the folder {folder}", load_folder(folder, name)


def _data_places(name: str, extra: Extra | None) -> Iterator[tuple[str, Benchmark | Group]]:
    """Yield the packages in the data directory: the last place, since copies of known benchmarks may lie there."""
    for folder in data_folders(name, extra):
        yield f"the folder {folder}", load_folder(folder, name)


def _member_places(name: str, extra: Extra | None) -> Iterator[tuple[str, Benchmark]]:
    """Yield the benchmark that a group has under `group.member`."""
    head, _, rest = name.rpartition(".")
    if not head or (group := get_group(head, extra)) is None:
        return
    for member in group.members:
        # A member called as the group calls it is looked up here again: without an end, where nothing else knows it.
        if fold(group.short(member)) != fold(rest):
            continue
        if fold(member) != fold(name) or _sibling_benchmark(group, member):
            yield f"the group {group.name}", member_of(group, member, extra)


def _as_benchmark(candidate: object, where: str) -> Benchmark | Group:
    if not isinstance(candidate, Benchmark | Group):
        how = "named BENCHMARK" if candidate is None else f"not {type(candidate).__name__}"
        raise ConfigError(
            f"{where} is not a benchmark: expected a newskills.base.benchmark.Benchmark (or Group), {how}."
        )
    if isinstance(candidate, Group):
        return replace(candidate, home=where.partition(":")[0])
    return candidate
