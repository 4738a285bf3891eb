# SPDX-License-Identifier: Apache-2.0
"""The files of a task's folder, and what is read of them."""

from __future__ import annotations

import hashlib
import posixpath
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct

from newskills.base.environment import TASK_IMAGES, ImageBuild, McpServer, ServiceGroup
from newskills.base.errors import DataError
from newskills.base.type_errors import type_fault
from newskills.graders.software.phases import TaskPhases, TaskStep

T = TypeVar("T")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)B?", re.IGNORECASE)
_MEGABYTES = {"": 1 / (1 << 20), "K": 1 / 1024, "M": 1, "G": 1024}
_STAGE = re.compile(r"FROM\s", re.IGNORECASE)
_WORKDIR = re.compile(r"WORKDIR\s+(.+?)\s*\Z", re.IGNORECASE)
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`(?: - at `([^`]*)`)?")


class UnsupportedTaskError(Exception):
    """The task needs what containers of agents do not give here."""


class TaskFiles(dict[str, bytes]):
    """Name in the folder of a task → content."""

    def __init__(self, task: str, files: Mapping[str, bytes]) -> None:
        super().__init__(files)
        self.task = task

    def text(self, name: str) -> str:
        """Return the text of the task's file `name`. Raises DataError."""
        try:
            return self[name].decode()
        except KeyError:
            raise DataError(f"Task {self.task} has no {name}.") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{self.task}/{name} is not UTF-8 text: {error.reason}.") from error


class TaskSettings(Struct, frozen=True, kw_only=True):
    """How a task is run. Times in seconds; `container_repo_dir` '' = the image's own folder."""

    container_repo_dir: str = ""
    variables: dict[str, str] = {}
    test_variables: dict[str, str] = {}
    solution_variables: dict[str, str] = {}
    agent_timeout: float = 0.0
    test_timeout: float = 0.0
    memory_mb: int = 0
    disk_mb: int = 0
    cpus: float = 0.0
    build_timeout: float = 0.0
    offline: bool = False
    phases: TaskPhases = TaskPhases()
    group: ServiceGroup | None = None
    mcp_servers: list[McpServer] = []
    task_steps: list[TaskStep] = []
    last_step_counts: bool = False
    category: str = ""
    tags: list[str] = []


class ReadTask(Struct, frozen=True, kw_only=True):
    """`image`: one that is there already; `build`: the folder with its Dockerfile, below the task's."""

    instruction: str
    settings: TaskSettings
    image: str = ""
    build: str = ""
    difficulty: str = ""


class TaskFormat(Struct, frozen=True, kw_only=True):
    """`read` raises DataError for a file that makes no sense, UnsupportedTaskError."""

    name: str
    task_file: str
    test_script: str
    read: Callable[[TaskFiles], ReadTask]


def last_workdir(dockerfile: str) -> str:
    """Return the folder in which the last stage works; '' where the base image, or a variable, decides."""
    workdir = ""
    for line in dockerfile.splitlines():
        if _STAGE.match(line.strip()):
            workdir = ""
        elif match := _WORKDIR.match(line.strip()):
            workdir = posixpath.join(workdir, match[1].strip("\"'"))
    if workdir.startswith("/") and "$" not in workdir:
        return workdir
    return ""


def parse_file(files: TaskFiles, name: str, parse: Callable[[str], Any], type_: type[T]) -> T:
    """Read a file of a task. Raises DataError, UnsupportedTaskError for a field that a strict type does not have."""
    try:
        raw = parse(files.text(name))
    except (yaml.YAMLError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{files.task}/{name} cannot be read: {error}.") from error
    return convert_value(files, name, raw, type_)


def convert_value(files: TaskFiles, name: str, raw: Any, type_: type[T], where: str = "") -> T:
    """Convert what stands at `where` in the file `name`. Raises DataError, UnsupportedTaskError as `parse_file`."""
    try:
        return msgspec.convert(raw, type_)
    except msgspec.ValidationError as error:
        if unknown := _UNKNOWN.match(str(error)):
            place = (unknown[2] or "").removeprefix("$").removeprefix(".")
            field = ".".join(part for part in (where, place, unknown[1]) if part)
            raise UnsupportedTaskError(f"{name} has the field `{field}`, which is not understood") from error
        at = f"{where}: " if where else ""
        raise DataError(f"{files.task}/{name}: {at}{type_fault(error, raw)}.") from error


def image_name(files: TaskFiles, folder: str, build: ImageBuild | None = None) -> str:
    """Return a name for the image of the Dockerfile in `folder` that is the same for all that is built of the same
    files, whatever the task is."""
    content = hashlib.sha256()
    for name in sorted(name for name in files if name.startswith(f"{folder}/") or folder == "."):
        place = name if folder == "." else name.removeprefix(f"{folder}/")
        content.update(f"{place}\0{len(files[name])}\0".encode() + files[name])
    if build is not None:
        content.update(msgspec.json.encode([build.dockerfile, build.target, sorted(build.arguments.items())]))
    return f"{TASK_IMAGES}:{content.hexdigest()[:24]}"


def parse_megabytes(size: str | None) -> int:
    """Return the megabytes of `512M`, or of a number of bytes; 0 where nothing is said."""
    match = _SIZE.fullmatch((size or "").strip())
    if match:
        return int(float(match[1]) * _MEGABYTES[match[2].upper()])
    return 0
