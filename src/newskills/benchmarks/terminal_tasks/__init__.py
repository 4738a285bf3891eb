# SPDX-License-Identifier: Apache-2.0
"""Folders of tasks to be done in a terminal, as Terminal-Bench and Harbor write them (https://www.tbench.ai,
https://harborframework.com): each holds the instruction, an image or a Dockerfile, and a script that decides.

hello/task.yaml  run-tests.sh  tests/  Dockerfile  docker-compose.yaml  solution.sh        Terminal-Bench 1
hello/task.toml  instruction.md  tests/test.sh  environment/Dockerfile  solution/solve.sh  Harbor, Terminal-Bench 2

A task's files are kept as they are; `graders.software.terminal` runs its tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from newskills.base.benchmark import Asset, Benchmark, Drop, Option, Source
from newskills.base.records import Row
from newskills.benchmarks.options import single_value
from newskills.benchmarks.terminal_tasks.files import TaskFiles, UnsupportedTaskError, image_name
from newskills.benchmarks.terminal_tasks.formats import FORMATS
from newskills.benchmarks.terminal_tasks.registry import is_registry, registry_source

MEMBERS = "[!.]*/*"
SELDOM = ("group", "mcp_servers", "task_steps", "last_step_counts")
"""Settings that rows have only where a task uses them."""


def terminal_task_set(name: str, folder: Path | str, **fields: Any) -> Benchmark:
    """Return a benchmark of all task folders in `folder`; `fields` are further ones of `Benchmark`."""
    return terminal_benchmark(
        name,
        title=name,
        sources=(Source(path=str(Path(folder).expanduser().resolve()), members=MEMBERS, format="asset"),),
        **fields,
    )


def terminal_benchmark(name: str, **fields: Any) -> Benchmark:
    """Return a benchmark of task folders; its sources give single files (format "asset")."""
    return Benchmark(
        **{
            "name": name,
            "category": "software-engineering",
            "join": group_task_folders,
            "row": row,
            "options": {"tasks": _from_folder()},
            "prompt": "agents/terminal",
            "grader": "terminal_tests",
            "grader_config": {"folder": "{folder}"},
            "metric": "terminal-bench",
            "solver": "software_agent",
            "defaults": {"environment.network": True},
            **fields,
        }
    )


def _from_folder() -> Option:
    def apply(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
        wanted = single_value("--tasks", values)
        if is_registry(wanted):
            source, depth = registry_source(wanted)
            return replace(benchmark, sources=(source,), items={}, join=partial(group_task_folders, depth=depth))
        place = str(Path(wanted).expanduser().resolve())
        return replace(benchmark, sources=(Source(path=place, members=MEMBERS, format="asset"),), items={})

    meaning = "a folder of task folders, or registry.json#NAME of Harbor, instead of the repository"
    return Option(meaning=meaning, apply=apply)


def group_task_folders(raw: Iterable[Row], depth: int = 1) -> Iterator[Row]:
    """Group single files to a raw row for each task folder with its `files`: name in the folder → bytes. `depth`: of
    the task folders in what was read."""
    for task, members in groupby(raw, lambda file: _split_task_path(file["_file"], depth)[0]):
        files = {_split_task_path(file["_file"], depth)[1]: file["asset"].data for file in members}
        if any(layout.task_file in files for layout in FORMATS):
            yield {"_file": task, "files": files}


def _split_task_path(name: str, depth: int) -> tuple[str, str]:
    """Split a name into (task, name in its folder)."""
    parts = name.split("/") if depth > 1 else name.removeprefix("tasks/").split("/")
    return parts[min(depth, len(parts)) - 1], "/".join(parts[depth:])


def row(raw: Row, index: int) -> Row | Drop:
    """Return the row of a task; its files become files beside the rows. Raises DataError for a task that cannot be
    read."""
    task, files = raw["_file"], TaskFiles(raw["_file"], raw["files"])
    layout = next(layout for layout in FORMATS if layout.task_file in files)
    try:
        made = layout.read(files)
    except UnsupportedTaskError as error:
        return Drop(str(error))
    is_needed = made.build or made.settings.group is not None
    kept = {name: data for name, data in files.items() if is_needed or not name.startswith("environment/")}
    settings: Row = msgspec.to_builtins(made.settings)
    return {
        "id": task,
        "instance_id": task,
        "task_format": layout.name,
        "task_file": Asset(f"{task}/{layout.task_file}", files[layout.task_file]),
        "task_files": [Asset(f"{task}/{name}", data) for name, data in kept.items()],
        "problem_statement": made.instruction,
        "image": made.image or image_name(files, made.build),
        "build": made.build,
        "test_script": layout.test_script,
        "subset_for_metrics": made.difficulty,
        **{name: value for name, value in settings.items() if value or name not in SELDOM},
    }
