# SPDX-License-Identifier: Apache-2.0
"""Benchmarks from outside: entry points, and folders of constants (`__init__.py`) beside `<split>.jsonl` files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec

from newskills.base.benchmark import Benchmark, Group, Judge
from newskills.base.errors import ConfigError
from newskills.base.registry import entry_points_of, fold, load_module
from newskills.benchmarks.constants import changed_fields, changed_judge, load_group
from newskills.benchmarks.listing import BenchmarkPlaces
from newskills.graders import GRADERS

MAP_VARIABLES = ("NEWSKILLS_EXTRA_BENCHMARK_MAP", "NEMO_SKILLS_EXTRA_BENCHMARK_MAP")
FOLDERS_VARIABLES = ("NEWSKILLS_EXTRA_DATASETS", "NEMO_SKILLS_EXTRA_DATASETS")
_GRADERS_BY_METRIC = {"math": "math", "multichoice": "multichoice"}


def entry_points_named(group: str, name: str) -> list[EntryPoint]:
    """Return the entry points of installed packages that carry `name`."""
    return [point for point in entry_points_of(group) if fold(point.name) == fold(name)]


def extra_folders(name: str, extra: object = None) -> list[Path]:
    """Return the folders that the user declared for `name`, each once. Raises ConfigError for an unreadable map."""
    folders: dict[Path, None] = {}
    mapping_given = extra.extra if isinstance(extra, BenchmarkPlaces) else extra
    for mapping in (mapping_given, _first_set_variable(MAP_VARIABLES)):
        for mapped_name, place in _read_map(mapping).items():
            if fold(mapped_name) == fold(name):
                folders[Path(place).expanduser().resolve()] = None
    more = extra.folders if isinstance(extra, BenchmarkPlaces) else ()
    for folder in _benchmark_packages(name, [*more, *split_folders(_first_set_variable(FOLDERS_VARIABLES))]):
        folders[folder.resolve()] = None
    return list(folders)


_HUB_NAME = re.compile(r"(?:hf:/{0,2})?([A-Za-z0-9][\w.-]*/[\w.-]+)(?::[\w.-]+)?")
"""The name of a data set of the hub, also as others write it."""


def data_folders(name: str, extra: object = None) -> list[Path]:
    """Return the packages called `name` in the data directory."""
    if isinstance(extra, BenchmarkPlaces):
        return list(_benchmark_packages(name, [extra.data_dir]))
    return []


def load_folder(folder: Path, name: str = "") -> Benchmark | Group:
    """Return what the constants in `folder/__init__.py` describe; the data of a benchmark are `folder/<split>.jsonl`.

    Understood: METRICS_TYPE (required), GENERATION_ARGS, GENERATION_MODULE, EVAL_SPLIT, NUM_SAMPLES, NUM_CHUNKS,
    REQUIRES_SANDBOX, REQUIRES_DATA_DIR (data are in the data directory), JUDGE_ARGS, JUDGE_PIPELINE_ARGS, and the older
    DATASET_GROUP, PROMPT_CONFIG, EVAL_ARGS; for groups IS_BENCHMARK_GROUP, BENCHMARKS, SCORE_MODULE. Mounts and
    variables of sandboxes are those of `ns sandbox`. Raises ConfigError: no such folder, METRICS_TYPE missing, a
    constant that cannot be read.
    """
    file = folder / "__init__.py"
    if not file.is_file():
        hint = ""
        if hub := _HUB_NAME.fullmatch(str(folder)):
            hint = (
                f"A data set of the hub needs a YAML file that says what its columns are: data: {{hf: {hub[1]}}}"
            )
        raise ConfigError(f"{folder} is not a benchmark: there is no file {file}.", hint=hint)
    module = load_module(str(file), "benchmark")
    name = _spelled_as(folder, name)
    constants = {key: value for key, value in vars(module).items() if key.isupper()}
    name = name or folder.resolve().name
    if constants.get("IS_BENCHMARK_GROUP"):
        return load_group(folder, name, constants)
    metric = constants.get("METRICS_TYPE")
    if not isinstance(metric, str):
        raise ConfigError(f"{file} does not set METRICS_TYPE, the name of the metric.")
    judge = changed_judge(constants, file)
    fields = changed_fields(constants, file)
    grader = _GRADERS_BY_METRIC.get(metric, metric)
    return Benchmark(
        name=name,
        category=str(constants.get("DATASET_GROUP", "external")),
        title=f"external: {folder}",
        metric=metric,
        judge=Judge(**judge) if judge is not None else None,
        needs_sandbox=bool(constants.get("REQUIRES_SANDBOX", False)),
        folder="" if constants.get("REQUIRES_DATA_DIR") else str(folder.resolve()),
        **{"grader": grader if grader in GRADERS else "", **fields},
    )


def _spelled_as(folder: Path, name: str) -> str:
    """Return `name` in the letters of the folders that it stands for, so that results have one name however it was
    typed."""
    spelled = ".".join(folder.resolve().parts[-1 - name.count(".") :])
    if fold(spelled) == fold(name):
        return spelled
    return name


def _read_map(mapping: object) -> Mapping[str, str]:
    """Return a map of name → folder, from a mapping, JSON text, or the path of a JSON file with relative folders."""
    if not mapping:
        return {}
    if isinstance(mapping, Mapping):
        return mapping
    text, base = str(mapping), Path()
    if not text.lstrip().startswith("{"):
        file = Path(text).expanduser()
        if not file.is_file():
            raise ConfigError(f"There is no file {file} with the map of extra benchmarks.")
        text, base = file.read_text(encoding="utf-8"), file.parent
    try:
        folders: dict[str, str] = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.DecodeError as error:
        raise ConfigError(f"The map of extra benchmarks is not JSON of name → folder: {error}.") from error
    return {mapped_name: str(base / Path(folder).expanduser()) for mapped_name, folder in folders.items()}


def _benchmark_packages(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield sub-folders with a benchmark called `name`; dots lead to sub-folders of those."""
    for folder in folders:
        candidates = [folder]
        for step in name.split("."):
            candidates = [
                child
                for parent in candidates
                if parent.is_dir()
                for child in parent.iterdir()
                if fold(child.name) == fold(step)
            ]
        yield from (package for package in candidates if (package / "__init__.py").is_file())


def _first_set_variable(names: Sequence[str]) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def split_folders(text: str) -> list[Path]:
    """Return the folders that a variable names, separated as in PATH or by commas."""
    return [Path(part).expanduser() for part in text.replace(",", os.pathsep).split(os.pathsep) if part.strip()]
