# SPDX-License-Identifier: Apache-2.0
"""What an engine is: from an environment's specification to command lines. It runs nothing itself."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Protocol

from newskills.base.environment import EnvironmentSpec, ImageBuild, TaskService
from newskills.base.errors import ConfigError
from newskills.environments.config import EnvironmentConfig

Argv = list[str]
SHELL = 'exec 2>&1; if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi'
"""Runs its first argument by bash where the image has it; both outputs in one, so that their order stays."""
INSIDE = ("sh", "-c", SHELL, "sh")
"""What runs the command that follows in a container."""
INPUT = 'name=$(mktemp) && cat >"$name" && exec <"$name" && rm -f "$name" && unset name || exit 126; '
WITH_INPUT = ("sh", "-c", INPUT + SHELL, "sh")
"""The same for a command that is given an input. It is read to its end first: podman 4 loses the output of a command
that ends with its input unread."""
STAY = "while sleep 3600 || [ $? -gt 128 ]; do :; done"
"""What keeps a container, by no more than nearly every image has; it outlives the end of its `sleep` by a signal."""
START_AND_STAY = (
    "exec 3<&0 4>&1 </dev/null >/dev/null 2>&1; unset PWD OLDPWD; "
    'while [ -e /proc/1/fd/4 ]; do :; done && exec "$@" <&3 >&4 2>&4 3<&- 4>&- & '
    f"exec 3<&- 4>&-; wait $! && exit; [ $? -gt 128 ] && exit; {STAY}"
)
"""The first process of a container: starts the program that follows, joined to the engine's client, and ends where
that ends by a signal or with its input; where it cannot begin, the container stays. The program waits until the first
process, which any command may reach, has let go of the pipes to the client."""
_SCHEME = re.compile(r"(?:docker|oras|library|oci|shub)://", re.ASCII)


class GroupProgram(Protocol):
    """Command lines for containers that reach each other by a network of their own, which leads nowhere else."""

    def make_network(self, name: str, subnet: str = "") -> Argv:
        """Return the command line that makes a network; `subnet`: its addresses, of which this machine has the first
        one. Without it, the engine chooses, and this machine may have none."""
        ...

    def remove_network(self, name: str) -> Argv: ...

    def subnet(self, name: str) -> Argv:
        """Return the command line that prints the addresses of the network, as `10.89.0.0/24`."""
        ...

    def make_volume(self, name: str) -> Argv: ...

    def make_service(self, name: str, service: TaskService, spec: EnvironmentSpec) -> Argv:
        """Return the command line that makes the container of a service and does not start it. `spec`: that of the
        environment, with its network. Raises ConfigError for an image that this program cannot use."""
        ...

    def start_service(self, name: str) -> Argv: ...

    def wait_for_end(self, name: str) -> Argv:
        """Return the command line that ends with the container, and prints its exit code."""
        ...

    def last_words(self, name: str) -> Argv:
        """Return the command line that prints the last lines of a service's output."""
        ...

    def enter_service(self, name: str, words: Sequence[str]) -> Argv: ...

    def others(self) -> list[tuple[Argv, Argv]]:
        """Return (command line that prints the names of networks or volumes, what removes those that follow)."""
        ...


class EngineProgram(Protocol):
    """Command lines of one program. `name` in each method: the container's. `has_users`: commands can run as any of its
    image's."""

    program: str
    _config: EnvironmentConfig
    has_users: bool = False

    def __init__(self, program: str, config: EnvironmentConfig) -> None:
        self.program, self._config = program, config

    @property
    def groups(self) -> GroupProgram | None:
        """What joins several containers to one environment; None: this program cannot."""
        return None

    def start(self, name: str, spec: EnvironmentSpec) -> list[Argv]:
        """Return the command lines that make the container, one after the other. Raises ConfigError for an image that
        this program cannot use."""
        ...

    def resume(self, name: str) -> Argv:
        """Return the command line that starts the container again, joined to our own input and output, with the program
        whose words followed those of `start`. It is empty where `start` takes none."""
        return []

    def has_image(self, image: str) -> Argv:
        """Return a command line that ends with 0 where `image` is on this machine. Raises ConfigError where this
        program builds no images."""
        raise self._builds_nothing(image)

    def build(self, image: str, build: ImageBuild) -> Argv:
        """Return the command line that makes `image`. Raises as `has_image`."""
        raise self._builds_nothing(image)

    def list_images(self, name: str) -> Argv:
        """Return the command line that prints, for each image whose name fits the pattern, its name and its size; empty
        where this program builds no images."""
        return []

    def remove_image(self, image: str) -> Argv:
        return []

    def enter(self, name: str, spec: EnvironmentSpec) -> Argv:
        """Return the command line that starts the program that follows in the folder, with the variables and (where the
        program has users) as the user of `spec`, joined to our own input and output."""
        ...

    def connect(self, name: str, *, online: bool) -> Argv:
        """Return the command line that gives the network to the running container, or takes it; empty where this
        program cannot."""
        return []

    def end_processes(self, name: str) -> list[Argv]:
        """Return the command lines that kill all that runs in the container and keep its files; once it is resumed,
        commands can be executed again."""
        ...

    def unpack(self, name: str, spec: EnvironmentSpec, target: str) -> Argv:
        """Return the command line that reads a tar archive from its standard input into the folder `target`, which is
        there."""
        ...

    def pack(self, name: str, spec: EnvironmentSpec, source: str) -> Argv:
        """Return the command line that writes the contents of the folder `source` to its standard output as a tar
        archive."""
        ...

    def remove(self, name: str) -> list[Argv]: ...

    def names(self) -> Argv:
        """Return the command line that prints a line for each container; its first word is the name."""
        ...

    def written_files(self, name: str) -> Argv:
        """Return the command line that prints the folder of this machine with what was written in the container; empty
        where that is not known."""
        return []

    def image_hint(self) -> str:
        """Return the advice for an image that cannot be started; empty: there is none."""
        return ""

    def _builds_nothing(self, image: str) -> ConfigError:
        return ConfigError(
            f"The image {image} has to be built of a Dockerfile, which {self.program} cannot do.",
            hint="Build it with podman or docker and bring it as a file (++environment.container_formatter="
            "/images/{instance_id}.sif), or use ++environment.engine=podman.",
        )


def is_address(image: str) -> bool:
    """Return whether `image` names one of a registry or a store, not a file or a folder."""
    return _SCHEME.match(image) is not None or not image.startswith(("/", "./", "../", "~"))


def without_scheme(image: str) -> str:
    return image.removeprefix("docker://")


def option_if_set(name: str, value: str) -> list[str]:
    """Return the option with its value; nothing where the value is empty."""
    if value:
        return [f"{name}={value}"]
    return []


def variable_options(flag: str, spec: EnvironmentSpec) -> Sequence[str]:
    return [f"{flag}{key}={value}" for key, value in sorted(spec.variables.items())]


def cpu_limit(config: EnvironmentConfig, spec: EnvironmentSpec) -> Sequence[str]:
    """Return the option for the cores of the run, else for those of the task, of which this machine may have less."""
    cpus = config.cpus or min(spec.cpus, os.cpu_count() or 1)
    if cpus:
        return [f"--cpus={cpus:g}"]
    return []
