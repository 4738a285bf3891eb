# SPDX-License-Identifier: Apache-2.0
"""Containers that hold the commands of jobs on this machine: images, users, GPUs, and what containers leave behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from newskills.base.cache import cache_folder
from newskills.base.errors import ConfigError
from newskills.base.store import waiting_lock
from newskills.environments.config import EnvironmentConfig
from newskills.environments.engines import ENGINES, program_of
from newskills.environments.engines.docker import Docker, Podman
from newskills.environments.programs import last_line

DOCKERFILE = "dockerfile:"
JOB, FOLDER, IMAGE = "newskills.job", "newskills.folder", "newskills.image"
"""Labels of containers: a hash of their job's folder, that folder, and the image by the name that the user gave."""
COMMON = (
    "--init",
    "--network=host",
    "--ipc=host",
    "--security-opt=label=disable",
    "--log-driver=none",
    "--pull=never",
    "--entrypoint=",
)
"""Options of all containers. `--init`, as programs that run as process 1 ignore TERM; SELinux hides what is
mounted; the output goes to the job's own log, so that the engine keeps no second one. No `--rm`: a container that is
removed while its client still asks how it ended has been seen to end with 0 (podman 4.3, and docker's client on its
socket)."""
PROBE = 'echo "bash ${BASH_VERSINFO[0]:-0} ${BASH_VERSINFO[1]:-0}"'
BASH = (4, 3)
NO_REASON = "it gave no reason"


class ContainerEngine:
    """An engine that is like docker. `environ` is that of the submitting process, which may say where the engine is;
    `name` becomes its program."""

    def __init__(self, name: str, environ: Mapping[str, str], *, is_privileged: bool = False) -> None:
        self.name, self._engine = program_of(name), name
        self._environ = dict(environ)
        self._is_privileged = is_privileged
        self._ids: dict[str, str] = {}

    @cached_property
    def is_podman(self) -> bool:
        """Also where podman answers to the name of docker."""
        return ENGINES.properties(self._engine).daemonless or "podman" in self.run("--version").stdout.lower()

    @cached_property
    def lines(self) -> Docker:
        """The engine's command lines."""
        kind = Podman if self.is_podman else Docker
        made = ENGINES.get(self._engine)
        if isinstance(made, type) and issubclass(made, kind):
            kind = made
        return kind(self.name, EnvironmentConfig())

    @cached_property
    def user(self) -> tuple[str, ...]:
        """Options that make what a container writes belong to the caller, whatever user its image names.

        Without privileges of its own an engine shows the caller as root inside; a daemon that runs as root does not.
        """
        if self.uid == 0:
            return ("--user=0:0",)
        groups = [f"--group-add={group}" for group in sorted(set(os.getgroups()) - {os.getgid()})]
        name = self._environ.get("USER") or "user"
        # Programs need a home that they can write to, and a name where the image's passwd file has none.
        return (f"--user={self.uid}:{os.getgid()}", *groups, "--env=HOME=/tmp", f"--env=USER={name}")

    @cached_property
    def uid(self) -> int:
        """The caller's user id as containers see it."""
        if self.is_podman or os.getuid() == 0 or self._own_service():
            return 0
        if "rootless" in self.run("info", "--format={{.SecurityOptions}}").stdout:
            return 0
        return os.getuid()

    def _own_service(self) -> bool:
        """Return whether docker's client talks to a service that runs as the caller (podman's does not say so
        itself)."""
        socket = self._environ.get("DOCKER_HOST", "").removeprefix("unix://")
        try:
            return os.stat(socket).st_uid == os.getuid()
        except OSError:
            return False

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the engine with these words to its end; outputs are text, decoded as UTF-8."""
        try:
            return subprocess.run(
                [self.name, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env=self._environ,
                check=False,
            )
        except OSError as error:
            return subprocess.CompletedProcess([self.name, *words], 127, "", f"{self.name}: {error.strerror}")

    def check(self) -> None:
        """Check that the engine answers. Raises ConfigError where it does not."""
        done = self.run("version")  # not `ps`: one broken container of anybody's makes that fail
        if done.returncode != 0:
            if not self.is_podman:
                remedy = "Is its service running, and do you have permission to use it?"
            else:
                remedy = ""
            raise ConfigError(
                f"{self.name} does not work here: {last_line(done.stderr, NO_REASON)}",
                hint=remedy,
            )

    def gpus(self, wanted: bool) -> tuple[str, ...]:
        """Return the options that give all GPUs of the machine, if it has any and the engine can.

        Raises ConfigError where they are `wanted` and the engine is not set up for them.
        """
        path = self._environ.get("PATH")
        if shutil.which("nvidia-smi", path=path) is None:
            return ()
        if self.lines.gives_gpus(path):
            visible = ("--env=CUDA_VISIBLE_DEVICES",) if "CUDA_VISIBLE_DEVICES" in self._environ else ()
            return (self.lines.gpu_option, *visible)
        if wanted:
            raise ConfigError(
                f"{self.name} cannot give GPUs to containers: it needs the NVIDIA Container Toolkit.",
                hint=self.lines.gpu_hint,
            )
        return ()

    def start_line(
        self,
        image: str,
        *,
        name: str,
        folder: str,
        gpus: bool,
        variables: Iterable[str],
        volumes: Iterable[str],
    ) -> list[str]:
        """Return the command line that starts the container of a job's command, whose words follow. `variables` are
        names: lists of processes show no values."""
        return [
            *(self.name, "run", *COMMON),
            f"--name={name}",
            f"--label={JOB}={folder_label(folder)}",
            f"--label={FOLDER}={folder}",
            *self._shared_options(gpus),
            *(f"--env={variable}" for variable in sorted(variables)),
            *volumes,
            f"--label={IMAGE}={image}",
            self.image(image),
        ]

    def _shared_options(self, gpus: bool) -> tuple[str, ...]:
        """Return the options that the trial of an image shares with the containers of jobs."""
        privileged = ("--privileged",) if self._is_privileged else ()
        return (*self.user, *privileged, *self.gpus(gpus))

    def image(self, image: str) -> str:
        """Return the id of `image` where `ready` has found it, else the image that a container would be started
        from."""
        if image_id := self._ids.get(image):
            return image_id
        if image.startswith(DOCKERFILE):
            return built_image_name(image)
        return image

    def ready(self, image: str, *, gpus: bool = False) -> None:
        """Ensure that containers of `image` start here and have bash; the image is built or pulled first if necessary.

        Jobs then run the very image that was there at their submission. Raises ConfigError.
        """
        if image in self._ids:
            return
        if image.endswith(".sqsh"):
            raise ConfigError(f"{self.name} cannot run {image}: squashfs images are only for Slurm with Pyxis.")
        if image.startswith(DOCKERFILE):
            image_id = self._build(image)
        else:
            image_id = self._id(image) or self._pull(image)
        done = self.run("run", "--rm", *COMMON, *self._shared_options(gpus), image_id, "bash", "-c", PROBE)
        if done.returncode == 127 or (done.returncode == 0 and _bash_version(done.stdout) < BASH):
            raise ConfigError(f"Image '{image}' has no bash {'.'.join(map(str, BASH))} or later, which jobs need.")
        if done.returncode != 0:
            remedy = "Install the package catatonit." if "container-init" in done.stderr else ""
            raise ConfigError(
                f"{self.name} cannot run image '{image}': {last_line(done.stderr, NO_REASON)}",
                hint=remedy,
            )
        self._ids[image] = image_id

    def label_values(self, label: str, value: str) -> dict[str, str]:
        """Return id → value of the label `value`, for containers that have `label`."""
        containers = self.run("ps", "--all", "--quiet", f"--filter=label={label}").stdout.split()
        if not containers:
            return {}
        form = f'{{{{.Id}}}} {{{{json (index .Config.Labels "{value}")}}}}'
        lines = self.run("inspect", f"--format={form}", *containers).stdout.splitlines()
        pairs = (line.partition(" ") for line in lines)
        return {container: json.loads(text) for container, _, text in pairs}

    def remove(self, container: str) -> None:
        self.run("rm", *self.lines.at_once, container)

    def _id(self, image: str) -> str:
        """Return the image's id; empty where it is not on this machine."""
        return self.run("image", "inspect", "--format={{.Id}}", image).stdout.strip().removeprefix("sha256:")

    def _pull(self, image: str) -> str:
        print(f"{self.name} pulls {image}, which is not on this machine yet", file=sys.stderr)
        code, last = self._show_output("pull", image)
        if code != 0:
            raise ConfigError(f"Image '{image}' is not on this machine, and {self.name} cannot pull it: {last}")
        return self._id(image) or image  # a transport (oci:, docker-archive:) names the image otherwise

    def _build(self, image: str) -> str:
        """Build the image. The engine is always asked: its cache knows whether anything has changed."""
        file, name = _dockerfile_of(image), built_image_name(image)
        print(f"{self.name} builds {name} from {file}", file=sys.stderr)
        with waiting_lock(_lock_folder(self._environ) / f"{name.replace(':', '-')}.lock", f"The image {name}"):
            code, last = self._show_output("build", "--file", str(file), "--tag", name, str(file.parent))
            if code != 0:
                raise ConfigError(f"{self.name} cannot build an image from {file}: {last}")
            return self._id(name)

    def _show_output(self, *words: str) -> tuple[int, str]:
        """Show the engine's output while it works; return its exit code and its last line."""
        last = ""
        with subprocess.Popen(
            [self.name, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=self._environ,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                sys.stderr.write(line)
                last = line.strip() or last
        return process.returncode, last


def folder_label(text: str) -> str:
    """Return a short label for the folder of a job."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def built_image_name(image: str) -> str:
    """Return the name of the image built from `dockerfile:<path>`. Raises ConfigError where there is no such file."""
    file = _dockerfile_of(image)
    name = re.sub(r"[^a-z0-9]+", "-", str(file).lower()).strip("-")
    return f"locally-built-{name}:{sha256(file.read_bytes()).hexdigest()[:12]}"


def _dockerfile_of(image: str) -> Path:
    file = Path(os.path.abspath(os.path.expanduser(image.removeprefix(DOCKERFILE).strip())))
    if not file.is_file():
        raise ConfigError(f"There is no file {file} to build the image '{image}' from.")
    return file


def _lock_folder(environ: Mapping[str, str]) -> Path:
    return cache_folder(environ) / "images"


def _bash_version(text: str) -> tuple[int, ...]:
    words = text.split()
    if words[:1] == ["bash"]:
        return tuple(int(word) for word in words[1:3])
    return (0, 0)
