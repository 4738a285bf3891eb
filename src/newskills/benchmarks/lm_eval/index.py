# SPDX-License-Identifier: Apache-2.0
"""Names of lm_eval → where tasks are described. Reading its 15,000 files takes seconds, so the list of them is kept."""

from __future__ import annotations

import contextlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import yaml

from newskills.base.cache import cache_folder
from newskills.base.errors import ConfigError, UnknownNameError, suggest
from newskills.base.lm_eval.building import HarnessTask
from newskills.base.lm_eval.package import PACKAGE, at_work, full_task_path, package_folder, short_task_path
from newskills.base.store import write_json

_GROUP_KEYS = ("group", "group_alias", "aggregate_metric_list")
_MORE_KEYS = ("include", "class", "task_list", *_GROUP_KEYS)


class _IndexEntry(msgspec.Struct, frozen=True):
    kind: str
    file: str
    tags: list[str]


@cache
def task_index() -> dict[str, Any]:
    """Return name → entry of all tasks, groups and tags of the package."""
    from lm_eval.tasks._index import Entry, Kind

    return {
        name: Entry(
            name=name, kind=Kind[kept.kind], yaml_path=_task_file(kept.file), cfg=None, tags=set(kept.tags)
        )
        for name, kept in _kept_index().items()
    }


def _task_file(file: str) -> Path | None:
    if file:
        return full_task_path(file)
    return None


def _kept_index() -> dict[str, _IndexEntry]:
    place = cache_folder() / PACKAGE / f"tasks-{version(PACKAGE)}.json"
    try:
        return msgspec.json.decode(place.read_bytes(), type=dict[str, _IndexEntry])
    except (OSError, msgspec.DecodeError):
        pass
    from lm_eval.tasks._index import TaskIndex

    with at_work():
        entries = TaskIndex.build([package_folder() / "tasks"])
    made = {
        name: _IndexEntry(
            entry.kind.name, short_task_path(entry.yaml_path) if entry.yaml_path else "", sorted(entry.tags)
        )
        for name, entry in entries.items()
    }
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_json(place, made)
    return made


def entry_of(name: str) -> tuple[Any, dict[str, Any]]:
    """Return the entry of a name or a file, and the index in which it stands.

    Raises UnknownNameError, ConfigError for a file that is none.
    """
    if name.lower().endswith((".yaml", ".yml")):
        return _entry_of_file(Path(name).expanduser().absolute())
    index = task_index()
    if name not in index:
        raise UnknownNameError("task of lm_eval", name, index, hint="All of them: lm_eval ls tasks")
    return index[name], index


def _entry_of_file(path: Path) -> tuple[Any, dict[str, Any]]:
    from lm_eval.tasks._index import Kind, TaskIndex

    if not path.is_file():
        raise ConfigError(f"There is no file {path} to load the task from.")
    _check_file(path)
    try:
        entry = TaskIndex.entry_from_path(path)
    except Exception as error:
        raise ConfigError(f"{path} is not a task of lm_eval: {error}") from error
    if entry is None:
        raise ConfigError(f"{path}, line 1, column 1: a task file of lm_eval needs the key 'task', or 'group'.")
    index: dict[str, Any] = {}
    if entry.kind is Kind.GROUP:  # its tasks may lie beside it, as with --include_path
        with at_work():
            beside = TaskIndex.build([path.resolve().parent])
        index = {**task_index(), **beside}
        own = [each for each in beside.values() if each.yaml_path == path.resolve()]
        if not own:
            raise ConfigError(
                f"{path}: lm_eval does not read this group; its name may stand in another file beside it."
            )
        entry = own[0]
    return entry, index


def _check_file(path: Path) -> None:
    """Raise ConfigError for what is no YAML, and for a key that tasks do not have, with line and column."""
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}{where}: this is not YAML: {error.problem}.") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())[:200]}.") from error
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path}, line 1, column 1: expected keys with values, as in a task file of lm_eval.")
    from dataclasses import fields

    from lm_eval.config.task import TaskConfig

    keys = [key for key, _ in node.value]
    if any(key.value in ("group", "class", "custom_dataset") for key in keys):
        return  # groups hand keys on to their tasks, and classes have keys of their own
    names = [field.name for field in fields(TaskConfig)]
    for key in keys:
        if key.value not in (*names, *_MORE_KEYS):
            mark = key.start_mark
            raise ConfigError(
                f"{path}, line {mark.line + 1}, column {mark.column + 1}: tasks of lm_eval have no key "
                f"'{key.value}'{suggest(key.value, names)}"
            )


def expand_task(name: str) -> Any:
    """Return what a name stands for: a `HarnessTask`, a list of them (a tag, a pattern), or a group of lm_eval whose
    tasks have one as `origin`. Nothing is downloaded. Raises UnknownNameError, ConfigError."""
    from lm_eval.utils import pattern_match

    if any(sign in name for sign in "*?[") and not Path(name).exists():
        index = task_index()
        names = pattern_match([name], list(index))
        if not names:
            raise UnknownNameError("task of lm_eval", name, index, hint="All of them: lm_eval ls tasks")
        tasks: list[HarnessTask] = []
        for each in names:
            made = expand_task(each)
            if hasattr(made, "get_all_tasks"):
                tasks += [leaf.origin for leaf in made.get_all_tasks()]
            elif isinstance(made, list):
                tasks += made
            else:
                tasks.append(made)
        return list({task.task: task for task in tasks}.values())
    entry, index = entry_of(name)
    try:
        with _leaf_factory() as factory:
            built = factory.build(entry, registry=dict(index))
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"lm-eval:{name} cannot be read by lm_eval: {type(error).__name__}: {error}") from error
    if isinstance(built, list):
        return [leaf.origin for leaf in built]
    return getattr(built, "origin", built)


@contextlib.contextmanager
def _leaf_factory() -> Any:
    """Yield a factory of groups whose tasks are not made, only named."""
    from lm_eval.tasks import _factory

    leaf = _leaf_class()

    class Lister(_factory.TaskFactory):  # type: ignore[misc]
        """Makes leaves in place of tasks."""

        def _build_task(self, entry: Any, overrides: dict[str, Any] | None) -> Any:
            file = short_task_path(entry.yaml_path) if entry.yaml_path else ""
            changes = _plain_settings(dict(overrides or {}), entry.name)
            name = changes.get("task", entry.name)
            return leaf(HarnessTask(task=name, file=file, overrides=changes))

    def inline(config: dict[str, Any]) -> Any:
        return leaf(HarnessTask(task=config["task"], config=_plain_settings(config, config["task"])))

    usual, _factory.ConfigurableTask = _factory.ConfigurableTask, inline
    try:
        with at_work():
            yield Lister()
    finally:
        _factory.ConfigurableTask = usual


@cache
def _leaf_class() -> Any:
    from lm_eval.api.task import Task

    class NamedTask(Task):  # type: ignore[misc]
        """Stands for a task in a group: `lm_eval` sums up groups by the names of their tasks alone."""

        def __init__(self, origin: HarnessTask) -> None:
            self.origin = origin

        @property
        def task_name(self) -> str:
            return self.origin.task

    NamedTask.__abstractmethods__ = frozenset()
    return NamedTask


def _plain_settings(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Return settings that a group hands on, as JSON. Raises ConfigError for a function among them."""
    try:
        return msgspec.json.decode(msgspec.json.encode(settings), type=dict[str, Any])
    except TypeError as error:
        raise ConfigError(
            f"lm-eval:{name}: its group hands on a function, which only a task's own file may name: {error}"
        ) from error
