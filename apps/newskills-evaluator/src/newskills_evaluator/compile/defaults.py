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
from newskills_evaluator.compile.tree import merge_trees, set_at_path
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
            set_at_path(own, package.split("."), content)
        items = _read_defaults(file)
        for item in items:
            if isinstance(item, DefaultsItem) and item.override:
                self.choices.setdefault(item.group, item.option)
        result: Row = {}
        for item in items:
            if item == SELF:
                result = merge_trees(result, own)
            elif isinstance(item, DefaultsItem) and not item.override:
                result = merge_trees(result, self.load_item(item, file, group, package, chain))
        return result

    def load_item(self, item: DefaultsItem, file: File, group: str, package: str, chain: tuple[Path, ...]) -> Row:
        """Return the content of the file that the item names, at its place in the tree."""
        where = _join_groups(group, item.group)
        option = item.option
        if where and where in self.choices:
            option = self.choices[where]
            self.used.add(where)
        self.groups.add(where)
        if option is None:
            return {}
        file_path = self.find_option(where, option)
        if file_path is None:
            if item.optional:
                return {}
            raise _unsupported_place_error(where, option, file) or self.missing_option_error(where, option, file)
        read = read_config(file_path)
        place = read.package if item.package is None else item.package
        return self.compose(
            read, where, _package_path(place, where, package, own_group=not item.group), (*chain, file.path)
        )

    def find_option(self, group: str, option: str) -> Path | None:
        for folder in (*self.folders, BUILT_IN):
            for suffix in ("", *SUFFIXES):
                path = folder / group / f"{option}{suffix}"
                if path.suffix in SUFFIXES and path.is_file():
                    return path
        return None

    def missing_option_error(self, group: str, option: str, file: File) -> ConfigError:
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


def _unsupported_place_error(group: str, option: str, file: File) -> ConfigError | None:
    """Return the error for a place that newskills knows but does not support; None for an unknown place."""
    kind = option.partition("/")[0]
    if group != "execution" or kind not in UNSUPPORTED:
        return None
    return ConfigError(
        f"{file.path}: 'execution: {option}' is not supported: {UNSUPPORTED[kind]}.",
        hint="newskills runs on this machine and on Slurm: add execution=local or execution=slurm/default to the "
        "command; or run this configuration with nemo-evaluator-launcher.",
    )


def compose_defaults(file: File, choices: Mapping[str, str | None]) -> tuple[Row, set[str]]:
    """Return the tree of `file` with all that its defaults bring, and the groups that its defaults name.

    `choices` take the place of options of groups. Raises ConfigError.
    """
    composer = _Composer([file.path.parent, file.path.parent / "conf"], choices)
    tree = composer.compose(file, "", "", ())
    return tree, composer.groups


def _read_defaults(file: File) -> list[DefaultsItem | str]:
    listed = file.content.get("defaults", [])
    if not isinstance(listed, list):
        raise ConfigError(f"{file.path}: defaults: expected a list, with lines such as '- deployment: vllm'.")
    items: list[DefaultsItem | str] = []
    for item in listed:
        if item == SELF:
            items.append(SELF)
        else:
            items += _parse_defaults_item(item, file)
    if SELF not in items:
        items.append(SELF)
    return items


def _parse_defaults_item(item: Any, file: File) -> list[DefaultsItem]:
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


def _join_groups(group: str, inner: str) -> str:
    if inner.startswith("/"):
        return inner[1:]
    return "/".join(part for part in (group, inner) if part)


def _package_path(package: str | None, group: str, parent: str, *, own_group: bool) -> str:
    """Return the path of keys below which a file's content goes: its group, or its `# @package`; `_global_` is the
    top.

    A file of the including file's own group goes where that goes.
    """
    if package is not None:
        own = group.replace("/", ".")
        paths = {"_global_": "", "_group_": own}
        return paths.get(package, package.replace("_global_.", ""))
    if own_group:
        return parent
    return group.replace("/", ".")
