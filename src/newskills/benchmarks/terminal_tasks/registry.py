# SPDX-License-Identifier: Apache-2.0
"""Data sets of Harbor's registry: a JSON file that lists each one's tasks as folders of a repository, at a commit.

Source: package `harbor` 0.26.0 (`models/registry.py`).
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Source
from newskills.base.errors import ConfigError, DataError, UnknownNameError

GITHUB = re.compile(r"(?:https://github\.com/|git@github\.com:)([^/]+/[^/]+?)(?:\.git)?/?\Z")


class RegistryEntry(Struct, frozen=True):
    """A task; without an address its folder is on this machine, beside the file."""

    name: str
    path: str
    git_url: str | None = None
    git_commit_id: str | None = None


class RegistryDataset(Struct, frozen=True):
    """A data set, of which there may be several versions."""

    name: str
    version: str
    tasks: list[RegistryEntry]


def is_registry(text: str) -> bool:
    """Return whether the text names a data set of a registry: `registry.json#NAME`, with `@VERSION` or without."""
    return text.partition("#")[0].endswith(".json")


def registry_source(text: str) -> tuple[Source, int]:
    """Return where the files of a data set's tasks are, and how many folders deep each task lies. Raises ConfigError
    (tasks of several places), DataError (no such file, no registry), UnknownNameError."""
    file, _, wanted = text.partition("#")
    path = Path(file).expanduser()
    try:
        datasets = msgspec.json.decode(path.read_bytes(), type=list[RegistryDataset])
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is no registry of Harbor: {error}.") from error
    named = [data for data in datasets if wanted in (data.name, f"{data.name}@{data.version}")]
    if not named:
        names = [f"{data.name}@{data.version}" for data in datasets]
        raise UnknownNameError("data set", wanted, names, hint=f"Write --tasks={file}#NAME.")
    tasks = named[-1].tasks
    places = {(task.git_url, task.git_commit_id) for task in tasks}
    depths = {len(PurePosixPath(task.path).parts) for task in tasks}
    if len(places) != 1 or len(depths) != 1:
        raise ConfigError(f"The tasks of {wanted} are in several repositories, at several commits or depths.")
    ((address, commit),) = places
    members = f"{{{','.join(sorted(task.path for task in tasks))}}}/*"
    if address is None:
        return Source(path=str(path.parent.resolve()), members=members, format="asset"), depths.pop()
    repository = GITHUB.match(address)
    if repository is None:
        raise ConfigError(f"The tasks of {wanted} are at {address}; newskills reads repositories of GitHub.")
    return (
        Source(
            github=repository[1], revision=commit or "", members=members, format="asset", instead="--tasks=FOLDER"
        ),
        depths.pop(),
    )
