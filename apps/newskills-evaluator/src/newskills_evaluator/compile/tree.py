# SPDX-License-Identifier: Apache-2.0
"""Nested dictionaries and lists, addressed by paths of texts (`("evaluation", "tasks", "0", "name")`)."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.records import Row

_PART = re.compile(r"[^.\[\]]+")
_TASKS = ("evaluation", "tasks")

Path = tuple[str, ...]


def split_path(text: str) -> Path:
    """Split `a.b[0].c` into its parts. Raises ConfigError for an empty one."""
    parts = tuple(_PART.findall(text))
    if not parts or ".." in text:
        raise ConfigError(f"'{text}' is not a path of keys; write section.key or section.list.0.key.")
    return parts


def format_path(path: Sequence[str]) -> str:
    """Return `section.key` for the parts of a path."""
    return ".".join(path)


def merge_trees(below: Any, above: Any) -> Any:
    """Lay `above` over `below`: dictionaries key by key, all else replaced. Neither is changed."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return copy.deepcopy(above)
    merged = {
        key: merge_trees(value, above[key]) if key in above else copy.deepcopy(value)
        for key, value in below.items()
    }
    return merged | {key: copy.deepcopy(value) for key, value in above.items() if key not in below}


def get_section(tree: Any, key: str) -> Row:
    """Return the section `key` of `tree`; an empty one where there is none."""
    section = None
    if isinstance(tree, dict):
        section = tree.get(key)
    if isinstance(section, dict):
        return section
    return {}


def without_nulls(tree: Mapping[str, Any]) -> Row:
    """Return a copy of `tree` without the keys whose value is null, in its sections too."""
    kept: Row = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            kept[key] = without_nulls(value)
        elif value is not None:
            kept[key] = value
    return kept


def get_at_path(tree: Any, path: Sequence[str]) -> Any:
    """Return the value at `path`. Raises KeyError where there is none."""
    for at, part in enumerate(path):
        if isinstance(tree, dict) and part in tree:
            tree = tree[part]
        elif isinstance(tree, list) and part.isdecimal() and int(part) < len(tree):
            tree = tree[int(part)]
        else:
            raise KeyError(format_path(path[: at + 1]))
    return tree


def set_at_path(tree: Row, path: Sequence[str], value: Any) -> None:
    """Set the value at `path`, adding dictionaries on the way. Raises ConfigError where another value is in the way.

    An item of a list is named by its number; one of `evaluation.tasks` also by its name: all tasks of that name.
    """
    here: Any = tree
    for at, part in enumerate(path):
        last = at == len(path) - 1
        if isinstance(here, dict):
            if last:
                here[part] = value
            elif not isinstance(here.get(part), dict | list):
                here[part] = {}
            here = here[part]
        elif isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            if last:
                here[int(part)] = value
            here = here[int(part)]
        elif isinstance(here, list) and tuple(path[:at]) == _TASKS and not last:
            _put_by_name(here, path[at:], value)
            return
        else:
            raise ConfigError(f"{format_path(path)}: {_explain_blocked_path(here, part, path[:at])}")


def _put_by_name(tasks: list[Any], path: Sequence[str], value: Any) -> None:
    """Set `value` in the tasks that the path names. Names may hold dots: the longest name that a task has wins."""
    for cut in range(len(path) - 1, 0, -1):
        name = ".".join(path[:cut])
        same_name = [task for task in tasks if isinstance(task, dict) and task.get("name") == name]
        for task in same_name:
            set_at_path(task, path[cut:], copy.deepcopy(value))
        if same_name:
            return
    task_names = ", ".join(str(task.get("name")) for task in tasks if isinstance(task, dict))
    raise ConfigError(f"evaluation.tasks has no '{path[0]}'; its tasks: {task_names}.")


def _explain_blocked_path(here: Any, part: str, path: Sequence[str]) -> str:
    if isinstance(here, list):
        return f"'{part}' is not a position in the list {format_path(path)}, which has {len(here)} items."
    return f"{format_path(path)} is a value, not a section."


def iter_leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value that is not a dictionary or list, and every empty one, with its path."""
    children: Iterable[tuple[Any, Any]]
    if isinstance(tree, dict):
        children = tree.items()
    elif isinstance(tree, list):
        children = enumerate(tree)
    else:
        children = ()
    has_match = False
    for key, value in children:
        has_match = True
        yield from iter_leaves(value, (*path, str(key)))
    if not has_match and path:
        yield path, tree
