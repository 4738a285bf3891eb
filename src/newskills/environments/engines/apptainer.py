# SPDX-License-Identifier: Apache-2.0
"""apptainer, and singularity before it was called so: images are files, containers are instances of one's own user."""

from __future__ import annotations

from newskills.base.environment import EnvironmentSpec
from newskills.environments.engines.engine import (
    Argv,
    EngineProgram,
    cpu_limit,
    is_address,
    option_if_set,
    variable_options,
)

_SCHEME = "docker://"
_KILL = ("sh", "-c", "kill -9 -1")


class Apptainer(EngineProgram):
    """Command lines of Apptainer (https://apptainer.org/docs/user/latest/cli/apptainer_instance_start.html).

    What is written lies in memory (`--writable-tmpfs`), within the limit that the machine's apptainer.conf sets
    (`sessiondir max size`).
    """

    def start(self, name: str, spec: EnvironmentSpec) -> list[Argv]:
        config = self._config
        image = spec.image
        if is_address(image) and "://" not in image:
            image = _SCHEME + image
        network = []
        if spec.offline or not config.network:
            network = ["--net", "--network=none"]
        return [
            [
                *(
                    self.program,
                    "instance",
                    "start",
                    "--containall",
                    "--cleanenv",
                    "--no-home",
                    "--writable-tmpfs",
                ),
                *network,
                *(f"--memory={max(config.memory_mb, spec.memory_mb)}M", f"--pids-limit={config.processes}"),
                *cpu_limit(config, spec),
                *(f"--bind={source}:{target}:ro" for source, target in sorted(spec.mounts.items())),
                *(image, name),
            ]
        ]

    def enter(self, name: str, spec: EnvironmentSpec) -> Argv:
        options = [*option_if_set("--pwd", spec.workdir), *variable_options("--env=", spec)]
        return [self.program, "exec", "--cleanenv", *options, f"instance://{name}"]

    def end_processes(self, name: str) -> list[Argv]:
        """Return the command line that kills what runs in an instance, whose first process is apptainer's own and
        outlives the signal."""
        return [[self.program, "exec", f"instance://{name}", *_KILL]]

    def unpack(self, name: str, spec: EnvironmentSpec, target: str) -> Argv:
        return [self.program, "exec", f"instance://{name}", "tar", "-xf", "-", "-C", target]

    def pack(self, name: str, spec: EnvironmentSpec, source: str) -> Argv:
        return [self.program, "exec", f"instance://{name}", "tar", "-cf", "-", "-C", source, "."]

    def remove(self, name: str) -> list[Argv]:
        return [[self.program, "instance", "stop", "--force", name]]

    def names(self) -> Argv:
        return [self.program, "instance", "list"]
