# SPDX-License-Identifier: Apache-2.0
"""Where an agent acts: a machine of its own for each sample, usually a container."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct

from newskills.base.errors import ConfigError, suggest

MIB = 1 << 20
_FIELD = re.compile(r"\{(\w+)\}")


class EnvironmentSpec(Struct, frozen=True, kw_only=True):
    """What one environment is made of.

    image     tag of an image, path of a `.sif` or `.sqsh` file, or a folder that holds a root file system
    build     folder on this machine with the Dockerfile that makes the image where it is not there; '' = none
    fields    what a user's own formatter of images may name
    trees     folders of this machine → where their copies lie inside
    mounts    folders of this machine → where they are seen inside, read-only
    workdir   folder in which commands start; '' = the image's own
    variables of every command
    memory_mb that this one needs at least
    disk_mb   that its commands need to fill at least
    cpus      processor cores that it has where the run does not say; 0 = all
    offline   without the network, whatever the run allows
    build_timeout  seconds that its image needs at least to be built
    user      who runs the commands; '' = the image's own
    """

    image: str
    build: str = ""
    fields: dict[str, str] = {}
    trees: dict[str, str] = {}
    mounts: dict[str, str] = {}
    workdir: str = "/"
    variables: dict[str, str] = {}
    memory_mb: int = 0
    disk_mb: int = 0
    cpus: float = 0.0
    offline: bool = False
    build_timeout: float = 0.0
    user: str = ""


class ExecutedCommand(Struct, frozen=True, kw_only=True):
    """What a command did.

    status     completed, timeout, disk_full (it was ended for using more disk than its environment may)
    output     standard output and error as they came, bytes beyond the limit left out of the middle
    omitted    bytes left out there
    exit_code  None where it did not end by itself
    """

    status: str
    output: bytes = b""
    omitted: int = 0
    exit_code: int | None = None
    seconds: float = 0.0


@runtime_checkable
class AgentEnvironment(Protocol):
    """One environment at work. Whatever a command does is a `ExecutedCommand`.

    Raises EnvironmentFailedError where the environment itself failed, which says nothing about the command.
    """

    async def execute(
        self, command: str, *, timeout: float, stdin: bytes = b"", max_output: int = MIB
    ) -> ExecutedCommand:
        """Run `command` by the environment's shell in its `workdir`; after `timeout` seconds everything that runs in
        the environment is killed, its files stay."""
        ...

    async def set_phase(self, *, user: str, online: bool) -> None:
        """Run the commands that follow as `user` ('' = the image's own), with the network that the run and the
        specification allow, or without. Raises EnvironmentFailedError where this engine cannot."""
        ...

    async def copy_in(self, source: Path, target: str) -> None:
        """Copy the contents of folder `source` of this machine into folder `target`."""
        ...

    async def copy_out(self, source: str, target: Path, *, max_bytes: int) -> None:
        """Copy the contents of folder `source` into folder `target` of this machine. Raises DataError beyond
        `max_bytes`, or for what no folder of this machine should hold."""
        ...

    async def stop(self) -> None:
        """End and remove the environment, with everything that runs in it. Idempotent."""
        ...


@runtime_checkable
class AgentEnvironments(Protocol):
    """Makes environments; at most so many exist at once as its configuration says."""

    async def start(self, spec: EnvironmentSpec) -> AgentEnvironment:
        """Wait for a place, then start an environment. Raises ConfigError (no engine, no such image),
        EnvironmentFailedError."""
        ...

    async def close(self) -> None:
        """End all environments that are left."""
        ...


def image_of(formatter: str, fields: Mapping[str, str]) -> str:
    """Return the image that `formatter` names for a row: `{field}` stands for one of `fields`. Raises ConfigError.

    >>> image_of("docker://sweb.{instance_id}", {"instance_id": "a__b-1"})
    'docker://sweb.a__b-1'
    """
    for name in _FIELD.findall(formatter):
        if name not in fields:
            raise ConfigError(
                f"The formatter of images '{formatter}' names the field '{name}'{suggest(name, fields)}"
            )
    return _FIELD.sub(lambda match: fields[match[1]], formatter)
