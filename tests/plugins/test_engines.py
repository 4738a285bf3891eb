# SPDX-License-Identifier: Apache-2.0
"""Rules of container engines, ours and one of another distribution: for agents, and for jobs."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.environments.images import ENGINE, own_containers
from tests.launch.needs import lacking

from newskills.base.environment import EnvironmentSpec
from newskills.base.errors import ConfigError, EnvironmentFailedError, UnknownNameError
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool
from newskills.environments.engines import ENGINES, JOB_ENGINES, find_engine
from newskills.environments.engines.job_engine import ContainerEngine
from newskills.launch.clusters.config import ClusterConfig, from_keys
from newskills.launch.executors.local import find_engine as engine_of_jobs

THEIRS = "podman-hpc"
ALL = [*ENGINES.built_in(), THEIRS]
RUNNING = [ENGINE, THEIRS]
IMAGES = {"enroot": "/images/x.sqsh", "apptainer": "/images/x.sif", "singularity": "/images/x.sif"}
SOON = 60.0

pytestmark = pytest.mark.usefixtures("plugged")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """podman under the name of podman-hpc, in front of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    if (podman := shutil.which(ENGINE)) is None:
        lacking("CONTAINERS", f"{ENGINE} is not installed here")
    program = folder / THEIRS
    program.write_text(f'#!/bin/sh\nexec {podman} "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("name", ALL)
def test_command_lines_begin_with_the_program_and_name_the_container(name: str) -> None:
    spec = EnvironmentSpec(image=IMAGES.get(name, "image:1"), workdir="/w", variables={"A": "it's"})
    engine = ENGINES.get(name)(name, EnvironmentConfig(engine=name))
    lines = [
        *engine.start("box", spec),
        engine.enter("box", spec),
        engine.unpack("box", spec, "/t"),
        engine.pack("box", spec, "/t"),
        *engine.end_processes("box"),
        *engine.remove("box"),
    ]
    for argv in lines:
        assert all(isinstance(word, str) for word in argv)
        assert argv
    assert any(argv[0] == name for argv in lines)
    assert all(any("box" in word for word in argv) for argv in lines)
    assert engine.names()
    assert isinstance(engine.image_hint(), str)


@pytest.mark.parametrize("name", ALL)
def test_one_that_is_not_installed_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"but {name} is not installed here"):
        find_engine(EnvironmentConfig(engine=name), {"PATH": "/nowhere"})


def test_unknown_names_are_refused_and_the_example_is_known() -> None:
    assert THEIRS in ENGINES.names()
    assert THEIRS not in ENGINES.built_in()
    with pytest.raises(UnknownNameError, match="did you mean 'podman'"):
        find_engine(EnvironmentConfig(engine="podmn"), os.environ)


@pytest.mark.parametrize("name", RUNNING)
def test_commands_files_and_deadlines(name: str, agent_image: str, programs: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("héllo\n")

    async def work() -> None:
        pool = ContainerPool(EnvironmentConfig(engine=name, memory_mb=512, processes=128), os.environ)
        try:
            environment = await pool.start(EnvironmentSpec(image=agent_image))
            await environment.copy_in(tmp_path / "in", "/task")
            first = await environment.execute(
                "cd /task && cat a.txt - >> a.txt; exit 3", timeout=SOON, stdin=b"more"
            )
            assert (first.status, first.exit_code) == ("completed", 3)
            slow = await environment.execute("sleep 600", timeout=2.0)
            assert slow.status == "timeout"
            await environment.copy_out("/task", tmp_path / "out", max_bytes=100_000)
            assert (tmp_path / "out" / "a.txt").read_text().startswith("héllo\n")
        finally:
            await pool.close()

    asyncio.run(work())
    assert own_containers() == []


@pytest.mark.parametrize("name", RUNNING)
def test_an_image_that_is_not_there(name: str, agent_image: str, programs: Path) -> None:
    async def work() -> None:
        pool = ContainerPool(EnvironmentConfig(engine=name, start_timeout=60), os.environ)
        try:
            await pool.start(EnvironmentSpec(image="localhost/newskills-no-such-image:1"))
        finally:
            await pool.close()

    with pytest.raises(EnvironmentFailedError, match=f"{name} cannot start a container of image") as caught:
        asyncio.run(work())
    assert name in str(caught.value.hint)


def test_a_program_may_have_another_name_than_its_engine(tmp_path: Path, programs: Path) -> None:
    """For agents and for jobs; the engine stands in a file of the user's."""
    (tmp_path / "hpc.py").write_text(
        "from newskills.environments.engines import EngineProperties\n"
        "from newskills.environments.engines.docker import Podman\n\n\n"
        f"class Hpc(Podman):\n    properties = EngineProperties(program={THEIRS!r}, like_docker=True)\n\n"
        "    def image_hint(self) -> str:\n        return 'ask them'\n"
    )
    name = f"{tmp_path}/hpc.py::Hpc"
    assert find_engine(EnvironmentConfig(engine=name), os.environ).names()[0] == THEIRS
    cluster = from_keys({"executor": "local", "engine": name}, "x.yaml", {})
    engine = engine_of_jobs(cluster, os.environ)
    assert engine is not None
    assert (engine.name, engine.is_podman) == (THEIRS, True)
    assert engine.lines.image_hint() == "ask them"


@pytest.mark.parametrize("name", [*JOB_ENGINES, THEIRS])
def test_those_like_docker_hold_the_commands_of_jobs(name: str) -> None:
    assert ENGINES.properties(name).like_docker
    cluster = from_keys({"executor": "local", "engine": name}, "x.yaml", {})
    assert cluster.engine == name


@pytest.mark.parametrize("name", [name for name in ALL if name not in (*JOB_ENGINES, THEIRS)])
def test_others_are_no_engines_of_jobs(name: str) -> None:
    with pytest.raises(ConfigError, match=f"engine is '{name}'; expected docker or podman"):
        from_keys({"executor": "local", "engine": name}, "x.yaml", {})


@pytest.mark.parametrize("name", RUNNING)
def test_a_job_runs_in_its_container(name: str, agent_image: str, programs: Path) -> None:
    engine = engine_of_jobs(ClusterConfig(executor="local", engine=name), os.environ)
    assert isinstance(engine, ContainerEngine)
    assert engine.name == name
    engine.ready(agent_image)
    shown = subprocess.run(
        [name, "run", "--rm", *engine.user, engine.image(agent_image), "sh", "-c", "echo inside"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "inside\n"
