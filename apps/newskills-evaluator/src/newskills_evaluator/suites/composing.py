# SPDX-License-Identifier: Apache-2.0
"""Files of nemo-evaluator 0.3 and later: what `defaults` bring, and `${…}`.

    defaults: [clusters/mine, {_base_: other.yaml}, _self_]   files below conf/ beside the config, and ~/.config
    ${.services.model.port}                                   another value of the composed file
    ${NAME}  ${NAME:-default}                                 a variable of this machine
    $${NAME}                                                  the text `${NAME}`, for a shell of the node

null takes away what a base brings; keys at the top that begin with `_` are only referred to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills_evaluator.compile.files import SUFFIXES, File, read_config
from newskills_evaluator.compile.problems import ConfigProblem
from newskills_evaluator.compile.tree import Path as Keys
from newskills_evaluator.compile.tree import get_at_path, merge_trees, without_nulls

BASE = "_base_"
SELF = "_self_"
GROUPS = {"clusters": "cluster"}
LOCAL = "clusters/local"
"""The only file that comes with nemo-evaluator itself: `type: local`."""
MARKS = ("services", "benchmarks")
MAX_DEPTH, MAX_TEXT_LENGTH = 20, 100_000
_OWN = re.compile(r"\$\{\.([A-Za-z0-9_.-]+)\}", re.ASCII)
_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}", re.ASCII)


def is_suite(file: File) -> bool:
    """Return whether the file is of the newer format."""
    listed = file.content.get("defaults")
    based = isinstance(listed, list) and any(isinstance(item, dict) and BASE in item for item in listed)
    return based or any(isinstance(file.content.get(name), dict | list) for name in MARKS)


def compose_suite(file: File) -> Row:
    """Return the tree of `file` with its own references resolved, and variables not yet. Raises UserError."""
    tree = _compose_file(file, _config_folders(file.path), ())
    resolved: Row = _resolve_own_references(tree, tree, 0)
    return {key: value for key, value in resolved.items() if not key.startswith("_")}


def with_variables(node: Any, environ: Mapping[str, str], problems: list[ConfigProblem], path: Keys = ()) -> Any:
    """Return `node` with variables in place, in which a further `${` is escaped; `api_key` of services stays as
    it is."""
    if isinstance(node, dict):
        return {key: with_variables(value, environ, problems, (*path, key)) for key, value in node.items()}
    if isinstance(node, list):
        return [with_variables(value, environ, problems, (*path, str(at))) for at, value in enumerate(node)]
    if not isinstance(node, str) or (path[:1] == ("services",) and path[-1] == "api_key"):
        return node

    def replaced(match: re.Match[str]) -> str:
        escaped, name, default = match.groups()
        if escaped:
            return match[0][1:]
        if name in environ:
            return environ[name]
        if default is None:
            problems.append(
                ConfigProblem(path, f"the variable {name} is not set; export it, or write ${{{name}:-VALUE}}")
            )
        return default or ""

    return _VARIABLE.sub(replaced, node).replace("${", "\\${")


def _compose_file(file: File, folders: Sequence[Path], chain: tuple[Path, ...]) -> Row:
    if file.path in chain or len(chain) > MAX_DEPTH:
        raise ConfigError(f"{file.path}: its defaults include it again (a circle).")
    content = {key: value for key, value in file.content.items() if key != "defaults"}
    listed = file.content.get("defaults")
    if listed is None:
        return content
    if not isinstance(listed, list):
        raise ConfigError(f"{file.path}: defaults: expected a list, with lines such as '- clusters/mine'.")
    result: Row = {}
    if SELF not in listed:
        listed = [*listed, SELF]
    for item in listed:
        if item == SELF:
            result = merge_trees(result, content)
        else:
            result = merge_trees(result, _load_item(item, file, folders, chain))
    return without_nulls(result)


def _load_item(item: Any, file: File, folders: Sequence[Path], chain: tuple[Path, ...]) -> Row:
    if isinstance(item, dict) and isinstance(item.get(BASE), str):
        return _compose_file(
            _read_from_folders(item[BASE], [file.path.parent, *folders], file), folders, (*chain, file.path)
        )
    if not isinstance(item, str):
        raise ConfigError(f"{file.path}: cannot read the item {item!r} of defaults; write '- clusters/mine'.")
    group, slash, _ = item.partition("/")
    if item == LOCAL and not any((folder / f"{item}.yaml").is_file() for folder in folders):
        return {"cluster": {"type": "local"}}
    content = _read_from_folders(item, folders, file).content
    if slash:
        return {GROUPS.get(group, group): content}
    return content


def _read_from_folders(name: str, folders: Sequence[Path], file: File) -> File:
    for folder in folders:
        for suffix in ("", *SUFFIXES):
            path = folder / f"{name}{suffix}"
            if path.suffix in SUFFIXES and path.is_file():
                return read_config(path)
    looked = ", ".join(str(folder) for folder in folders) or f"{file.path.parent / 'conf'}, which is not there"
    raise ConfigError(f"{file.path}: the defaults name '{name}', which is not in {looked}.")


def _config_folders(path: Path) -> list[Path]:
    named = [path.parent / "conf", Path("~/.config/nemo-evaluator/conf").expanduser()]
    return [folder for folder in named if folder.is_dir()]


def _resolve_own_references(node: Any, root: Row, depth: int) -> Any:
    if isinstance(node, dict):
        return {key: _resolve_own_references(value, root, depth) for key, value in node.items()}
    if isinstance(node, list):
        return [_resolve_own_references(value, root, depth) for value in node]
    if not isinstance(node, str) or "${." not in node:
        return node

    def replaced(match: re.Match[str]) -> str:
        try:
            value = get_at_path(root, tuple(match[1].split(".")))
        except KeyError:
            return match[0]
        return str(value)

    text = _OWN.sub(replaced, node)
    if len(text) > MAX_TEXT_LENGTH:
        raise ConfigError("The references in the configuration make it grow without limit.")
    if text == node or depth > MAX_DEPTH:
        return text
    return _resolve_own_references(text, root, depth + 1)
