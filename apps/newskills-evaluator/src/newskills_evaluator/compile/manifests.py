# SPDX-License-Identifier: Apache-2.0
"""Artifacts of a training pipeline that `${art:…}` names, where the pipeline keeps manifests in a folder.

env.toml says where: `[artifacts.manifest] root = "/shared/artifacts"`. There: `<name>/v<number>/manifest.json` with
`path` and `metadata`; the file `<name>/latest` has the name of the newest version's folder.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, suggest
from newskills.base.records import Row

_VERSION = re.compile(r"v?(\d+)\Z", re.ASCII)


class Manifests(Struct, frozen=True):
    """`root` None: env.toml names no folder."""

    root: Path | None = None

    def field(self, key: str, named: Any, field: str) -> Any:
        """Return `field` of the artifact `named` (`name:version`), which `run.<key>` gives.

        Raises ConfigError that says whose the missing piece is.
        """
        if not isinstance(named, str) or not named:
            raise ConfigError(
                f"${{art:{key},…}} refers to run.{key}, which is not an artifact: write the path itself"
            )
        if self.root is None:
            raise ConfigError(
                f"run.{key} names '{named}', an artifact in the Weights & Biases account of the training "
                "pipeline, which newskills does not download: write the path itself, here or on the command "
                "line; or name the pipeline's folder of manifests in env.toml: [artifacts.manifest] root = …"
            )
        manifest = _read_manifest(self.root, named, key)
        values = {**(manifest.get("metadata") or {}), **manifest}
        name = field.removeprefix("metadata.")
        if name not in values:
            raise ConfigError(f"the artifact '{named}' has no field '{name}'{suggest(name, values)}")
        return values[name]


def _read_manifest(root: Path, named: str, key: str) -> Row:
    name, _, version = named.partition(":")
    folder = root / name
    if ".." in Path(name).parts or not folder.is_dir():
        raise ConfigError(f"run.{key} names the artifact '{name}', but {root} has none of this name")
    path = folder / _version_folder(folder, version) / "manifest.json"
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"run.{key} names '{named}', but {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected a JSON object")
    return content


def _version_folder(folder: Path, version: str) -> str:
    """Return the name of the version's folder; of the newest one where none, or `latest`, is asked for."""
    if version and version != "latest":
        number = _VERSION.match(version)
        if number:
            return f"v{number[1]}"
        return Path(version).name
    latest = folder / "latest"
    if latest.is_file():
        return Path(latest.read_text(encoding="utf-8", errors="replace").strip()).name
    numbers = [
        int(match[1]) for child in folder.iterdir() if (match := _VERSION.match(child.name)) and child.is_dir()
    ]
    return f"v{max(numbers, default=0)}"
