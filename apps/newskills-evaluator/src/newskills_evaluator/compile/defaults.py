# SPDX-License-Identifier: Apache-2.0
"""`defaults:` lists as Hydra composes them (hydra.cc/docs/advanced/defaults_list).

    defaults:
      - execution: slurm/default     # execution/slurm/default.yaml, below the key `execution`
      - deployment: vllm
      - _self_                       # this file; at the end where it is not named

Files are looked for beside the config, then among those of newskills, which carry the launcher's values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, suggest
from newskills.base.records import Row
from newskills_evaluator.compile.files import BUILT_IN, SUFFIXES, File, read_config
from newskills_evaluator.compile.tree import merge, put
from newskills_evaluator.profiles import UNSUPPORTED

SELF = "_self_"
_ITEM = re.compile(r"(?:(?P<word>override|optional)\s+)?(?P<group>/?[\w./-]*)(?:@(?P<package>[\w.]*))?\Z")


class DefaultsItem(Struct, frozen=True, kw_only=True):
    """One item of a defaults list: `option` of `group`; `option` None: nothing is taken."""

    group: str
    option: str | None
    package: str | None = None
    optional: bool = False
    override: bool = False


class _Composer:
    """`choices`: group → option, from the command line and from `override` items."""

    def __init__(self, folders: Sequence[Path], choices: Mapping[str, str | None]) -> None:
        self.folders = folders
        self.choices = dict(choices)
        self.used: set[str] = set()
        self.groups: set[str] = set()

    def compose(self, file: File, group: str, package: str, chain: tuple[Path, ...]) -> Row:
        if file.path in chain:
            raise ConfigError(f"{file.path}: its defaults include it again (a circle).")
        content = {key: value for key, value in file.content.items() if key != "defaults"}
        own: Row = content
        if package:
            own = {}
            put(own, package.split("."), content)
        items = _items(file)
        for item in items:
            if isinstance(item, DefaultsItem) and item.override:
                self.choices.setdefault(item.group, item.option)
        result: Row = {}
        for item in items:
            if item == SELF:
                result = merge(result, own)
            elif isinstance(item, DefaultsItem) and not item.override:
                result = merge(result, self.chosen(item, file, group, package, chain))
        return result

    def chosen(self, item: DefaultsItem, file: File, group: str, package: str, chain: tuple[Path, ...]) -> Row:
        """Return what the item brings, at its place in the tree."""
        where = _joined(group, item.group)
        option = item.option
        if where and where in self.choices:
            option = self.choices[where]
            self.used.add(where)
        self.groups.add(where)
        if option is None:
            return {}
        file_path = self.find(where, option)
        if file_path is None:
            if item.optional:
                return {}
            raise _elsewhere(where, option, file) or self.missing(where, option, file)
        read = read_config(file_path)
        place = read.package if item.package is None else item.package
        return self.compose(
            read, where, _place(place, where, package, own_group=not item.group), (*chain, file.path)
        )

    def find(self, group: str, option: str) -> Path | None:
        for folder in (*self.folders, BUILT_IN):
            for suffix in ("", *SUFFIXES):
                path = folder / group / f"{option}{suffix}"
                if path.suffix in SUFFIXES and path.is_file():
                    return path
        return None

    def missing(self, group: str, option: str, file: File) -> ConfigError:
        roots = [folder / group for folder in (*self.folders, BUILT_IN)]
        sections = {
            str(path.relative_to(root).with_suffix(""))
            for root in roots
            for s in SUFFIXES
            for path in root.rglob(f"*{s}")
        }
        what = f"{group}: {option}" if group else option
        return ConfigError(
            f"{file.path}: the defaults name '{what}', which is in none of the folders{suggest(option, sections)}"
        )


def _elsewhere(group: str, option: str, file: File) -> ConfigError | None:
    """Explain a place that newskills knows and cannot use; None: it is unknown."""
    kind = option.partition("/")[0]
    if group != "execution" or kind not in UNSUPPORTED:
        return None
    return ConfigError(
        f"{file.path}: 'execution: {option}' is not supported: {UNSUPPORTED[kind]}.",
        hint="newskills runs on this machine and on Slurm: add execution=local or execution=slurm/default to the "
        "command; or run this configuration with nemo-evaluator-launcher.",
    )


def compose(file: File, choices: Mapping[str, str | None]) -> tuple[Row, set[str]]:
    """Return the tree of `file` with all that its defaults bring, and the groups that its defaults name.

    `choices` take the place of options of groups. Raises ConfigError.
    """
    composer = _Composer([file.path.parent, file.path.parent / "conf"], choices)
    tree = composer.compose(file, "", "", ())
    return tree, composer.groups


def _items(file: File) -> list[DefaultsItem | str]:
    listed = file.content.get("defaults", [])
    if not isinstance(listed, list):
        raise ConfigError(f"{file.path}: defaults: expected a list, with lines such as '- deployment: vllm'.")
    items: list[DefaultsItem | str] = []
    for item in listed:
        items += [SELF] if item == SELF else _choices(item, file)
    if SELF in items:
        return items
    return [*items, SELF]


def _choices(item: Any, file: File) -> list[DefaultsItem]:
    if isinstance(item, str):
        path, _, package = item.partition("@")
        return [DefaultsItem(group="", option=path, package=package or None)]
    if not isinstance(item, dict) or len(item) != 1:
        raise ConfigError(f"{file.path}: cannot read the item {item!r} of defaults; write '- group: option'.")
    key, value = next(iter(item.items()))
    matched = _ITEM.match(key)
    options = value if isinstance(value, list) else [value]
    if matched is None or not all(option is None or isinstance(option, str) for option in options):
        raise ConfigError(
            f"{file.path}: cannot read the item '{key}: {value}' of defaults; write '- group: option'."
        )
    if any("${" in (option or "") for option in options):
        raise ConfigError(
            f"{file.path}: defaults are read before any ${{…}} is resolved: write one option of '{key}'."
        )
    return [
        DefaultsItem(
            group=matched["group"],
            option=option,
            package=matched["package"],
            optional=matched["word"] == "optional",
            override=matched["word"] == "override",
        )
        for option in options
    ]


def _joined(group: str, inner: str) -> str:
    if inner.startswith("/"):
        return inner[1:]
    return "/".join(part for part in (group, inner) if part)


def _place(package: str | None, group: str, parent: str, *, own_group: bool) -> str:
    """Return where a file's content goes: its group's keys, or what it says; `_global_`: to the top.

    A file of the including file's own group goes where that goes.
    """
    if package is not None:
        own = group.replace("/", ".")
        words = {"_global_": "", "_group_": own}
        return words.get(package, package.replace("_global_.", ""))
    if own_group:
        return parent
    return group.replace("/", ".")
