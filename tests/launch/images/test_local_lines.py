# SPDX-License-Identifier: Apache-2.0
"""Command lines of job containers, by engine, also by one that is not on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.launch.containers import client, local

from newskills.base.errors import ConfigError
from newskills.base.plan import CommandGroup, HardwareConfig, Job
from newskills.launch.executors.local import CLEAN_UP, Containers
from newskills.launch.place import JobFolder

COMMON = (
    *("--init", "--network=host", "--ipc=host", "--security-opt=label=disable", "--log-driver=none"),
    *("--pull=never", "--entrypoint="),
)
HASH = "f5146d3dac682387"
"""Of the folder's path."""
FOLDER = JobFolder(path="/jobs/a", logs="/logs/a", code="/code/a:b")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for PATH; the caller is no root."""
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    monkeypatch.setattr(os, "getgid", lambda: 55)
    monkeypatch.setattr(os, "getgroups", lambda: [55, 7])
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def program(folder: Path, name: str, says: str = "") -> None:
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)


def executor(programs: Path, engine: str, **environ: str) -> Containers:
    variables = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "USER": "ann",
        "DOCKER_HOST": "",
        "TOKEN": "secret",
        **environ,
    }
    return local(programs, engine=engine, environ=variables, env_vars=["TOKEN"], mounts=["/data:/data:ro"])


def step(executor: Containers, gpus: int = 0) -> list[str]:
    command = client("m", "")
    group = CommandGroup(name="all", commands=(command,), hardware=HardwareConfig(num_gpus=gpus))
    return [str(word) for word in executor.step(Job(name="a", groups=(group,)), 0, command, FOLDER)]


def test_docker_as_a_user(programs: Path) -> None:
    program(programs, "docker", "Docker version 27")
    words = step(executor(programs, "docker"))
    name = words[2]
    image = words[-1]
    assert words == [
        *("contained", "m", name, "docker", "run", *COMMON, f"--name={name}"),
        *(f"--label=newskills.job={HASH}", "--label=newskills.folder=/jobs/a"),
        *("--user=1234:55", "--group-add=7", "--env=HOME=/tmp", "--env=USER=ann", "--env=TOKEN"),
        *("--volume=/data:/data:ro", "--volume=/jobs/a:/jobs/a", "--volume=/logs/a:/logs/a"),
        '--mount="type=bind","source=/code/a:b","destination=/nemo_run/code","readonly"',
        "--volume=/tmp/newskills-ports-1234:/tmp/newskills-ports-1234",
        *(f"--label=newskills.image={image}", image),
    ]
    assert "secret" not in " ".join(words)


def test_podman_shows_the_caller_as_root(programs: Path) -> None:
    program(programs, "podman", "podman version 4")
    program(programs, "docker", "podman version 4")
    own, other = step(executor(programs, "podman")), step(executor(programs, "docker"))
    assert own[3] == "podman"
    assert own[14:17] == ["--label=newskills.folder=/jobs/a", "--user=0:0", "--env=TOKEN"]
    assert "--volume=/tmp/newskills-ports-1234:/tmp/newskills-ports-0" in own
    assert other == ["docker" if word == "podman" else word for word in own]  # by another name


def test_gpus_and_privileges(programs: Path) -> None:
    program(programs, "docker", "Docker version 27")
    program(programs, "nvidia-smi")
    docker = executor(programs, "docker")
    with pytest.raises(ConfigError, match="docker cannot give GPUs to containers") as refused:
        step(docker, gpus=1)
    assert refused.value.hint == "sudo nvidia-ctk runtime configure --runtime=docker, then restart docker"
    program(programs, "nvidia-ctk")
    words = step(executor(programs, "docker", CUDA_VISIBLE_DEVICES="1", NEWSKILLS_PRIVILEGED_DOCKER="1"), gpus=1)
    assert words[words.index("--env=USER=ann") + 1 :][:3] == [
        *("--privileged", "--gpus=all", "--env=CUDA_VISIBLE_DEVICES"),
    ]
    assert words[-1] == words[-2].removeprefix("--label=newskills.image=")


@pytest.mark.parametrize(("engine", "remove"), [("podman", "rm --force --time=0"), ("docker", "rm --force")])
def test_what_a_job_leaves_is_removed_at_once(programs: Path, engine: str, remove: str) -> None:
    program(programs, engine, f"{engine} version 4")
    command = client("m", "")
    work = Job(name="a", groups=(CommandGroup(name="all", commands=(command,)),))
    text = executor(programs, engine).texts(work, FOLDER)[CLEAN_UP]
    assert f"{engine} ps --all --quiet --filter label=newskills.job={HASH}" in text
    assert f"timeout 60 {engine} {remove} $left" in text
