# SPDX-License-Identifier: Apache-2.0
"""enroot: an unpacked image that commands are started in, one after the other; no process stays between them."""

from __future__ import annotations

from newskills.base.environment import EnvironmentSpec
from newskills.base.errors import ConfigError
from newskills.environments.config import EnvironmentConfig
from newskills.environments.engines.engine import (
    SHELL,
    Argv,
    EngineProgram,
    is_address,
    no_builder,
    variables,
    without_scheme,
)


class Enroot(EngineProgram):
    """https://github.com/NVIDIA/enroot/blob/main/doc/cmd/start.md

    It has no limits of its own for memory and processes, and does not close the network: a job's limits hold.
    """

    def __init__(self, program: str, config: EnvironmentConfig) -> None:
        self.program, self._config = program, config

    def start(self, name: str, spec: EnvironmentSpec) -> list[Argv]:
        """Raises ConfigError for an image that is no file, and where the network must be closed."""
        if is_address(spec.image):
            image = without_scheme(spec.image)
            raise ConfigError(
                f"enroot needs the image {image} as a file.",
                hint=f"Import it once: enroot import --output NAME.sqsh docker://{image}",
            )
        if spec.offline or not self._config.network:
            raise ConfigError(
                "enroot cannot keep commands from the network.",
                hint="Allow it with ++environment.network=true, or use ++environment.engine=apptainer.",
            )
        return [[self.program, "create", "--name", name, spec.image]]

    def has_image(self, image: str) -> Argv:
        raise no_builder(self.program, image)

    def build(self, image: str, folder: str) -> Argv:
        raise no_builder(self.program, image)

    def execute(self, name: str, spec: EnvironmentSpec, command: str) -> Argv:
        options = [word for pair in variables("", spec) for word in ("--env", pair)]
        for source, target in sorted(spec.mounts.items()):
            options += ["--mount", f"{source}:{target}:none:x-create=dir,bind,ro"]
        inside = ["sh", "-c", f'cd "$2" && {SHELL}', "sh", command, spec.workdir or "/"]
        return [self.program, "start", "--root", "--rw", *options, name, *inside]

    def end_processes(self, name: str) -> list[Argv]:
        """Killing the client has ended them: they are its children."""
        return []

    def unpack(self, name: str, spec: EnvironmentSpec, target: str) -> Argv:
        return [self.program, "start", "--root", "--rw", name, "tar", "-xf", "-", "-C", target]

    def pack(self, name: str, spec: EnvironmentSpec, source: str) -> Argv:
        return [self.program, "start", "--root", "--rw", name, "tar", "-cf", "-", "-C", source, "."]

    def remove(self, name: str) -> list[Argv]:
        return [[self.program, "remove", "--force", name]]

    def names(self) -> Argv:
        return [self.program, "list"]

    def written_files(self, name: str) -> Argv:
        return []
