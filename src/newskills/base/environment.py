# SPDX-License-Identifier: Apache-2.0
"""Where an agent acts: a machine of its own for each sample, usually a container."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct, structs

from newskills.base.errors import ConfigError, suggest

MIB = 1 << 20
TASK_IMAGES = "localhost/newskills-task"
"""What names of images begin with that are built of tasks' files."""
_FIELD = re.compile(r"\{(\w+)\}")


Condition = Literal["started", "healthy", "completed"]


class HealthCheck(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that says by its exit code 0 that the container is ready, as Docker's HEALTHCHECK."""

    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    start_interval_sec: float = 5.0
    retries: int = 3


class ImageBuild(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an image is built of: a folder, a Dockerfile in it, the stage to build, and values of its arguments."""

    folder: str
    dockerfile: str = "Dockerfile"
    target: str = ""
    arguments: dict[str, str] = {}


class TaskService(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A container of an environment with several.

    name        host name by which the others reach it; `aliases`: further ones
    build       what makes the image where it is not there; None = it comes from a registry
    command     None = the image's own; so is `entrypoint`
    files       file or folder of this machine → where a copy of it lies inside
    volumes     volume that services share → where it is seen inside
    needs       service that has to be started, healthy or completed before this one starts
    health      its command is a line of shell words, without a shell
    variables   of the container; `user`, `workdir`: '' = the image's own
    """

    name: str
    image: str
    aliases: list[str] = []
    build: ImageBuild | None = None
    entrypoint: list[str] | None = None
    command: list[str] | None = None
    variables: dict[str, str] = {}
    user: str = ""
    workdir: str = ""
    files: dict[str, str] = {}
    volumes: dict[str, str] = {}
    needs: dict[str, Condition] = {}
    health: HealthCheck | None = None
    memory_mb: int = 0
    shared_memory: str = ""

    def with_folder(self, folder: Path) -> TaskService:
        """Return the service with its files and its build in `folder`, which their names begin from."""
        build = self.build
        if build is not None:
            build = structs.replace(build, folder=str(folder / build.folder))
        files = {str(folder / source): target for source, target in self.files.items()}
        return structs.replace(self, build=build, files=files)


class ServiceGroup(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The services of an environment in the order in which they start; agents act in the one called `main`."""

    services: list[TaskService]
    main: str = "main"

    @property
    def main_service(self) -> TaskService:
        return next(service for service in self.services if service.name == self.main)

    def with_folder(self, folder: Path) -> ServiceGroup:
        """Return the group with the files of its services in `folder`."""
        return structs.replace(self, services=[service.with_folder(folder) for service in self.services])


class GroupNetwork(Struct, frozen=True, kw_only=True):
    """A network of its own for one environment: host name → address."""

    name: str
    addresses: dict[str, str]

    def hosts(self, host: str) -> dict[str, str]:
        """Return the names and addresses of all hosts but this one."""
        return {name: address for name, address in self.addresses.items() if address != self.addresses[host]}


class AllowedHosts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an environment whose network may lead to some hosts only needs from its start: `named`: all hosts that a
    phase allows by their full names; `first`: those of the first phase, None = all hosts."""

    named: list[str] = []
    first: list[str] | None = None


class McpServer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A server of tools that a task offers to its agent: a command in the environment, or an address there."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http"] = "sse"
    url: str = ""
    command: str = ""
    args: list[str] = []

    def fill(self, template: Any) -> Any:
        """Return a template with what the server is: `{name}`, `{url}`, `{command}` in texts (in texts of several words
        as JSON), `{args}` and `{words}` as lists where they stand alone."""
        lists = {"{args}": self.args, "{words}": [self.command, *self.args]}
        if isinstance(template, str):
            if template in lists:
                return lists[template]
            values = {"{name}": self.name, "{url}": self.url, "{command}": self.command}
            for place, value in {**values, **{key: json.dumps(value) for key, value in lists.items()}}.items():
                template = template.replace(place, value)
            return template
        if isinstance(template, dict):
            return {key: self.fill(value) for key, value in template.items()}
        if isinstance(template, list):
            return [self.fill(value) for value in template]
        return template


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
    group     the services of an environment of several containers, the agent's among them; None = one container
    allowed   the hosts that it may reach where not all; None = it has the network, or has none
    network   the group's own; set by what makes environments
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
    group: ServiceGroup | None = None
    allowed: AllowedHosts | None = None
    network: GroupNetwork | None = None


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

    async def set_phase(self, *, user: str, online: bool, hosts: Sequence[str] = ()) -> None:
        """Run the commands that follow as `user` ('' = the image's own), with the network that the run and the
        specification allow, or with these hosts alone. Raises EnvironmentFailedError where this engine cannot."""
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

    def expect(self, spec: EnvironmentSpec) -> None:
        """Begin to start an environment that will be asked for soon, where there is room for it."""
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
