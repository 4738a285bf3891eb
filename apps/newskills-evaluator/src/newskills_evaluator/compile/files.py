# SPDX-License-Identifier: Apache-2.0
"""Config files: where `-c NAME` is looked for, and how one is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, suggest
from newskills.base.records import Row
from newskills.launch.clusters.reading import Numbers, parse_yaml, read_text

SUFFIXES = (".yaml", ".yml")
BUILT_IN = Path(__file__).parent / "library"
EXAMPLE = "ns evaluate -c ./my-evaluation.yaml --dry-run"
_PACKAGE = re.compile(r"#\s*@package\s+(\S+)")


class File(Struct, frozen=True, kw_only=True):
    """A config file as it stands. `package`: what its line `# @package …` says."""

    path: Path
    content: Row
    package: str | None = None


def find_config(name: str, folders: Sequence[Path]) -> Path:
    """Return the file that `-c name` means: a path where it looks like one, else `name` in the first folder that has
    it.

    Raises DataError that tells what exists.
    """
    if "/" in name or name.endswith(SUFFIXES):
        path = Path(name).expanduser()
        if not path.is_file():
            raise DataError(f"There is no config file {name}.", hint=f"For example: {EXAMPLE}")
        return path
    for folder in (*folders, BUILT_IN):
        for suffix in SUFFIXES:
            if (path := folder / f"{name}{suffix}").is_file():
                return path
    config_names = {
        path.stem for folder in (*folders, BUILT_IN) for s in SUFFIXES for path in folder.glob(f"*{s}")
    }
    looked = ", ".join(str(folder) for folder in folders) or "no folder of the project"
    raise DataError(
        f"There is no config '{name}' in {looked} or among those of newskills{suggest(name, config_names)}",
        hint=f"For your own file, give its path: {EXAMPLE}",
    )


def read_config(path: Path) -> File:
    """Read a config file. Raises DataError (unreadable), ConfigError (no YAML, or no dictionary)."""
    text = read_text(path)
    content = parse_yaml(text, path, "a config", "deployment: …", Numbers)
    match = _PACKAGE.search(text.partition("\n\n")[0])
    return File(path=path, content=_with_text_keys(content, path), package=match.group(1) if match else None)


def _with_text_keys(content: Mapping[Any, object], path: Path) -> Row:
    """Make keys texts; YAML reads `1:` and `on:` as something else. Raises ConfigError for an odd key."""
    done: Row = {}
    for key, value in content.items():
        if not isinstance(key, str | int | float) or isinstance(key, bool):
            raise ConfigError(f"{path}: the key {key!r} is not text; write it in quotes.")
        done[str(key)] = _normalize_value(value, path)
    return done


def _normalize_value(value: object, path: Path) -> object:
    if isinstance(value, dict):
        return _with_text_keys(value, path)
    if isinstance(value, list):
        return [_normalize_value(item, path) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
