# SPDX-License-Identifier: Apache-2.0
"""Benchmarks from outside: entry points, and folders of constants (`__init__.py`) beside `<split>.jsonl` files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.registry import fold, load_module
from newskills.config.values import parse_value

MAP_VARIABLE = "NEMO_SKILLS_EXTRA_BENCHMARK_MAP"
FOLDERS_VARIABLE = "NEMO_SKILLS_EXTRA_DATASETS"
_GRADERS_BY_METRIC = {"math": "math", "multichoice": "multichoice"}


def installed(group: str, name: str) -> list[EntryPoint]:
    """The entry points of installed packages that carry `name`."""
    return [point for point in entry_points(group=group) if fold(point.name) == fold(name)]


def extra_folders(name: str, extra: object = None) -> list[Path]:
    """The folders that the user declared for `name`, each once. Raises ConfigError for an unreadable map."""
    found: dict[Path, None] = {}
    for mapping in (extra, os.environ.get(MAP_VARIABLE)):
        for known, place in _read_map(mapping).items():
            if fold(known) == fold(name):
                found[Path(place).expanduser().resolve()] = None
    for folder in _packages(name, _split(os.environ.get(FOLDERS_VARIABLE, ""))):
        found[folder.resolve()] = None
    return list(found)


def load_folder(folder: Path, name: str = "") -> Benchmark:
    """The benchmark that the constants in `folder/__init__.py` describe; its data are `folder/<split>.jsonl`.

    Understood: METRICS_TYPE (required), GENERATION_ARGS, EVAL_SPLIT, NUM_SAMPLES, REQUIRES_SANDBOX, and the older
    DATASET_GROUP, PROMPT_CONFIG, EVAL_ARGS. Raises ConfigError: no such folder, METRICS_TYPE missing.
    """
    file = folder / "__init__.py"
    if not file.is_file():
        raise ConfigError(f"{folder} is no benchmark: there is no file {file}.")
    module = load_module(str(file), "benchmark")
    metric = getattr(module, "METRICS_TYPE", None)
    if not isinstance(metric, str):
        raise ConfigError(f"{file} does not set METRICS_TYPE, the name of the metric.")
    args = _generation_args(module, file)
    prompt = args.pop("prompt_config", "generic/default")
    grader = args.pop("eval_type", _GRADERS_BY_METRIC.get(metric, metric))
    split = str(getattr(module, "EVAL_SPLIT", "test"))
    return Benchmark(
        name=name or folder.name,
        category=str(getattr(module, "DATASET_GROUP", "external")),
        title=f"external: {folder}",
        prompt=str(prompt),
        grader=str(grader),
        grader_config={key[12:]: args.pop(key) for key in list(args) if key.startswith("eval_config.")},
        metric=metric,
        defaults=args,
        samples=int(getattr(module, "NUM_SAMPLES", 0)),
        split=split,
        needs_sandbox=bool(getattr(module, "REQUIRES_SANDBOX", False)),
        folder=str(folder.resolve()),
    )


def _generation_args(module: ModuleType, file: Path) -> Row:
    """`++key=value` words of the constants → dotted key → value; later words win."""
    words = shlex.split(f"{getattr(module, 'EVAL_ARGS', '')} {getattr(module, 'GENERATION_ARGS', '')}")
    if prompt := getattr(module, "PROMPT_CONFIG", ""):
        words.insert(0, f"prompt_config={prompt}")
    args: Row = {}
    for word in words:
        key, equals, value = word.lstrip("+").partition("=")
        if not equals:
            raise ConfigError(f"{file}: '{word}' in GENERATION_ARGS is not of the form ++key=value.")
        args[key] = parse_value(value)
    return args


def _read_map(mapping: object) -> Mapping[str, str]:
    """A mapping, JSON text, or the path of a JSON file with relative folders."""
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
    return {known: str(base / Path(folder).expanduser()) for known, folder in folders.items()}


def _packages(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Sub-folders with a benchmark called `name`; dots lead to sub-folders of those."""
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
        yield from (found for found in candidates if (found / "__init__.py").is_file())


def _split(text: str) -> list[Path]:
    return [Path(part).expanduser() for part in text.replace(",", os.pathsep).split(os.pathsep) if part.strip()]
