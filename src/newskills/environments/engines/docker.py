# SPDX-License-Identifier: Apache-2.0
"""podman (as root or rootless) and docker, whose command lines are nearly the same."""

from __future__ import annotations

import shutil
from pathlib import Path

from newskills.base.environment import EnvironmentSpec
from newskills.base.errors import ConfigError
from newskills.environments.engines.engine import (
    START_AND_STAY,
    Argv,
    EngineProgram,
    cpu_limit,
    variables,
    without_scheme,
)
from newskills.environments.owners import LABEL

_DROPPED = ("AUDIT_WRITE", "MKNOD", "NET_RAW")


class Docker(EngineProgram):
    """Command lines of Docker (https://docs.docker.com/reference/cli/docker/container/run/)."""

    at_once: tuple[str, ...] = ("--force",)
    """Options of `rm` that kill what still runs without asking it first."""
    gpu_option = "--gpus=all"
    gpu_hint = "sudo nvidia-ctk runtime configure --runtime=docker, then restart docker"
    has_users: bool = True
    bridge = "bridge"
    """The network of containers that name none."""

    def start(self, name: str, spec: EnvironmentSpec) -> list[Argv]:
        """Return the command line that starts a container. Raises ConfigError for a folder or a file as the image."""
        return [[*self._run(name, spec), "--entrypoint=sh", *self._image(spec.image), "-c", START_AND_STAY, "sh"]]

    def resume(self, name: str) -> Argv:
        return [self.program, "start", "--attach", "--interactive", name]

    def has_image(self, image: str) -> Argv:
        return [self.program, "image", "inspect", "--format={{.Id}}", without_scheme(image)]

    def build(self, image: str, folder: str) -> Argv:
        closed = [] if self._config.network else ["--network=none"]
        return [self.program, "build", "--quiet", *closed, f"--tag={image}", folder]

    def enter(self, name: str, spec: EnvironmentSpec) -> Argv:
        options = [*([f"--workdir={spec.workdir}"] if spec.workdir else []), *variables("--env=", spec)]
        user = [f"--user={spec.user}"] if spec.user else []
        return [self.program, "exec", "--interactive", *user, *options, name]

    def connect(self, name: str, *, online: bool) -> Argv:
        return [self.program, "network", "connect" if online else "disconnect", self.bridge, name]

    def end_processes(self, name: str) -> list[Argv]:
        return [[self.program, "stop", "--time=0", name]]

    def unpack(self, name: str, spec: EnvironmentSpec, target: str) -> Argv:
        return [self.program, "cp", "-", f"{name}:{target}"]

    def pack(self, name: str, spec: EnvironmentSpec, source: str) -> Argv:
        return [self.program, "cp", f"{name}:{source}/.", "-"]

    def remove(self, name: str) -> list[Argv]:
        return [[self.program, "rm", *self.at_once, "--volumes", name]]

    def names(self) -> Argv:
        return [self.program, "ps", "--all", f"--filter=label={LABEL}", "--format={{.Names}}"]

    def written_files(self, name: str) -> Argv:
        return [self.program, "inspect", "--format={{.GraphDriver.Data.UpperDir}}", name]

    def image_hint(self) -> str:
        return (
            f"Is the image there? `{self.program} images` lists those of this machine; `{self.program} pull` "
            f"downloads one, `{self.program} build` makes one."
        )

    def gives_gpus(self, path: str | None) -> bool:
        """Return whether the engine is set up for GPUs; `path`: where programs are looked for."""
        return any(shutil.which(f"nvidia-{tool}", path=path) for tool in ("container-runtime-hook", "ctk"))

    def _run(self, name: str, spec: EnvironmentSpec) -> Argv:
        config = self._config
        memory = f"{max(config.memory_mb, spec.memory_mb)}m"
        return [
            *(self.program, "run", "--interactive", f"--name={name}", f"--label={LABEL}=1"),
            f"--network={self._network() if config.network and not spec.offline else 'none'}",
            *(f"--memory={memory}", f"--memory-swap={memory}", f"--pids-limit={config.processes}"),
            *cpu_limit(config, spec),
            *(f"--cap-drop={capability}" for capability in _DROPPED),
            "--security-opt=no-new-privileges",
            "--log-driver=none",
            *variables("--env=", spec),
            *(volume(source, target, read_only=True) for source, target in sorted(spec.mounts.items())),
        ]

    def _network(self) -> str:
        return "bridge"

    def _image(self, image: str) -> Argv:
        if image.startswith(("/", "./", "../", "~")):
            raise ConfigError(
                f"{self.program} cannot use {image} as an image.",
                hint="Name an image by its tag, or use ++environment.engine=apptainer for .sif files and podman for "
                "folders.",
            )
        return [without_scheme(image)]


class Podman(Docker):
    """Command lines of Podman (https://docs.podman.io/en/latest/markdown/podman-run.1.html)."""

    bridge = "podman"
    at_once = ("--force", "--time=0")
    gpu_option = "--device=nvidia.com/gpu=all"
    gpu_hint = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"

    def gives_gpus(self, path: str | None) -> bool:
        folders = Path("/etc/cdi"), Path("/var/run/cdi")
        return any(file.is_file() for folder in folders for file in folder.glob("nvidia*"))

    def _network(self) -> str:
        return "private"

    def _image(self, image: str) -> Argv:
        """Return the words that name the image. A folder's files are not changed: what is written lies in a layer above
        them."""
        if image.startswith(("/", "./", "../", "~")) and Path(image).expanduser().is_dir():
            return ["--rootfs", f"{Path(image).expanduser().resolve()}:O"]
        return super()._image(image)


def volume(source: str, target: str, *, read_only: bool = False) -> str:
    """Return the option that mounts the host's `source` as `target`; paths may contain any character."""
    if ":" not in source + target:
        return f"--volume={source}:{target}" + (":ro" if read_only else "")
    fields = ["type=bind", f"source={source}", f"destination={target}", *(["readonly"] if read_only else [])]
    return "--mount=" + ",".join('"' + field.replace('"', '""') + '"' for field in fields)
