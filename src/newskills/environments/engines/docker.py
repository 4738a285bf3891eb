# SPDX-License-Identifier: Apache-2.0
"""podman (as root or rootless) and docker, whose command lines are nearly the same."""

from __future__ import annotations

import ipaddress
import shutil
from collections.abc import Sequence
from pathlib import Path

from newskills.base.environment import EnvironmentSpec, GroupNetwork, ImageBuild, TaskService
from newskills.base.errors import ConfigError
from newskills.environments.engines.engine import (
    START_AND_STAY,
    Argv,
    EngineProgram,
    cpu_limit,
    option_if_set,
    variable_options,
    without_scheme,
)
from newskills.environments.owners import LABEL

_DROPPED = ("AUDIT_WRITE", "MKNOD", "NET_RAW")
_SECURITY = (*(f"--cap-drop={capability}" for capability in _DROPPED), "--security-opt=no-new-privileges")
LOG_SIZE = "1m"


class Docker(EngineProgram):
    """Command lines of Docker (https://docs.docker.com/reference/cli/docker/container/run/)."""

    at_once: tuple[str, ...] = ("--force",)
    """Options of `rm` that kill what still runs without asking it first."""
    gpu_option = "--gpus=all"
    gpu_hint = "sudo nvidia-ctk runtime configure --runtime=docker, then restart docker"
    has_users: bool = True
    bridge = "bridge"
    """The network of containers that name none."""
    network_options: tuple[str, ...] = ()
    subnet_format = "{{(index .IPAM.Config 0).Subnet}}"
    log_driver = "json-file"

    def start(self, name: str, spec: EnvironmentSpec) -> list[Argv]:
        """Return the command line that starts a container. Raises ConfigError for a folder or a file as the image."""
        return [[*self._run(name, spec), "--entrypoint=sh", *self._image(spec.image), "-c", START_AND_STAY, "sh"]]

    def resume(self, name: str) -> Argv:
        return [self.program, "start", "--attach", "--interactive", name]

    def has_image(self, image: str) -> Argv:
        return [self.program, "image", "inspect", "--format={{.Id}}", without_scheme(image)]

    def build(self, image: str, build: ImageBuild) -> Argv:
        options = [] if self._config.network else ["--network=none"]
        if build.dockerfile != "Dockerfile":
            options.append(f"--file={Path(build.folder, build.dockerfile)}")
        if build.target:
            options.append(f"--target={build.target}")
        options += [f"--build-arg={name}={value}" for name, value in sorted(build.arguments.items())]
        return [self.program, "build", "--quiet", *options, f"--tag={image}", build.folder]

    def list_images(self, name: str) -> Argv:
        shown = "{{.Repository}}:{{.Tag}} {{.Size}}"
        return [self.program, "images", f"--filter=reference={name}", f"--format={shown}"]

    def remove_image(self, image: str) -> Argv:
        return [self.program, "rmi", image]

    def enter(self, name: str, spec: EnvironmentSpec) -> Argv:
        options = [*option_if_set("--user", spec.user), *option_if_set("--workdir", spec.workdir)]
        return [self.program, "exec", "--interactive", *options, *variable_options("--env=", spec), name]

    def connect(self, name: str, *, online: bool) -> Argv:
        action = "connect" if online else "disconnect"
        return [self.program, "network", action, self.bridge, name]

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
        if spec.group is not None and spec.network is not None:
            network = self._join_options(name, spec.group.main_service, spec.network)
        elif config.network and not spec.offline:
            network = [f"--network={self._network()}"]
        else:
            network = ["--network=none"]
        return [
            *(self.program, "run", "--interactive", f"--name={name}", f"--label={LABEL}=1"),
            *network,
            *self._limits(max(config.memory_mb, spec.memory_mb)),
            *cpu_limit(config, spec),
            *_SECURITY,
            "--log-driver=none",
            *variable_options("--env=", spec),
            *(mount_option(source, target, read_only=True) for source, target in sorted(spec.mounts.items())),
        ]

    def _limits(self, memory_mb: int) -> Argv:
        memory = f"{memory_mb}m"
        return [f"--memory={memory}", f"--memory-swap={memory}", f"--pids-limit={self._config.processes}"]

    def _join_options(self, name: str, service: TaskService, network: GroupNetwork) -> Argv:
        """Return the options that join a service's container to the network and volumes of its environment; `name`:
        what theirs begin with."""
        return [
            *(f"--network={network.name}", f"--ip={network.addresses[service.name]}"),
            *(f"--add-host={host}:{address}" for host, address in network.hosts(service.name).items()),
            *(
                mount_option(f"{network.name}.{source}", target)
                for source, target in sorted(service.volumes.items())
            ),
        ]

    @property
    def groups(self) -> Docker:
        return self

    def make_network(self, name: str, subnet: str = "") -> Argv:
        addresses = []
        if subnet:
            addresses = [f"--subnet={subnet}", f"--gateway={ipaddress.ip_network(subnet)[1]}"]
        options = (*self.network_options, *addresses, f"--label={LABEL}=1")
        return [self.program, "network", "create", "--internal", *options, name]

    def remove_network(self, name: str) -> Argv:
        return [self.program, "network", "rm", name]

    def subnet(self, name: str) -> Argv:
        return [self.program, "network", "inspect", f"--format={self.subnet_format}", name]

    def make_volume(self, name: str) -> Argv:
        return [self.program, "volume", "create", f"--label={LABEL}=1", name]

    def make_service(self, name: str, service: TaskService, spec: EnvironmentSpec) -> Argv:
        assert spec.network is not None
        entrypoint, words = [], list(service.command or [])
        if service.entrypoint is not None:
            first, *others = service.entrypoint or [""]
            entrypoint, words = [f"--entrypoint={first}"], [*others, *words]
        return [
            *(self.program, "create", f"--name={name}", f"--label={LABEL}=1"),
            *self._join_options(name, service, spec.network),
            *self._limits(service.memory_mb or max(self._config.memory_mb, spec.memory_mb)),
            *cpu_limit(self._config, spec),
            *_SECURITY,
            *(f"--log-driver={self.log_driver}", f"--log-opt=max-size={LOG_SIZE}"),
            *(f"--env={key}={value}" for key, value in sorted(service.variables.items())),
            *option_if_set("--user", service.user),
            *option_if_set("--workdir", service.workdir),
            *option_if_set("--shm-size", service.shared_memory),
            *entrypoint,
            *self._image(service.image),
            *words,
        ]

    def start_service(self, name: str) -> Argv:
        return [self.program, "start", name]

    def wait_for_end(self, name: str) -> Argv:
        return [self.program, "wait", name]

    def last_words(self, name: str) -> Argv:
        return [self.program, "logs", "--tail=5", name]

    def enter_service(self, name: str, words: Sequence[str]) -> Argv:
        return [self.program, "exec", name, *words]

    def others(self) -> list[tuple[Argv, Argv]]:
        listing = ("ls", f"--filter=label={LABEL}", "--format={{.Name}}")
        return [
            ([self.program, "network", *listing], [self.program, "network", "rm"]),
            ([self.program, "volume", *listing], [self.program, "volume", "rm", "--force"]),
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
    network_options = ("--disable-dns",)  # its server answers for the world outside, too
    subnet_format = "{{(index .Subnets 0).Subnet}}"
    log_driver = "k8s-file"
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


def mount_option(source: str, target: str, *, read_only: bool = False) -> str:
    """Return the option that mounts the host's `source` as `target`; paths may contain any character."""
    if ":" not in source + target:
        option = f"--volume={source}:{target}"
        if read_only:
            option += ":ro"
        return option
    fields = ["type=bind", f"source={source}", f"destination={target}"]
    if read_only:
        fields.append("readonly")
    return "--mount=" + ",".join('"' + field.replace('"', '""') + '"' for field in fields)
