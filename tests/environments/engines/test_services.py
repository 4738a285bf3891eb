# SPDX-License-Identifier: Apache-2.0
"""Environments of several containers: they reach each other, start in order, and go together."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.commands.running import ns
from tests.environments.images import ENGINE, own_containers

from newskills.base.environment import (
    TASK_IMAGES,
    EnvironmentSpec,
    HealthCheck,
    ImageBuild,
    ServiceGroup,
    TaskService,
)
from newskills.base.errors import ConfigError, EnvironmentFailedError
from newskills.environments import check_image
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool
from newskills.environments.owners import LABEL, new_name

SOON = 20.0
FETCH = (
    'python3 -c \'import urllib.request as u; print(u.urlopen("http://{}", timeout=5).read().decode(), end="")\''
)
SERVE = "mkdir -p /data && cp -r /data /site && cd /site && exec python3 -m http.server {port}"


def served(name: str, image: str, port: int = 8000, **more: object) -> TaskService:
    return TaskService(
        **{
            "name": name,
            "image": image,
            "command": ["sh", "-c", SERVE.format(port=port)],
            "health": HealthCheck(
                command=FETCH.format(f"127.0.0.1:{port}").replace("\n", ""), interval_sec=0.1, retries=100
            ),
            **more,
        }
    )


def all_names(*kinds: str) -> list[str]:
    """Containers, networks and volumes of all environments."""
    names = []
    for kind in kinds or ("container", "network", "volume"):
        words = [ENGINE, kind, "ls", *(["--all"] if kind == "container" else []), f"--filter=label={LABEL}"]
        form = "{{.Names}}" if kind == "container" else "{{.Name}}"
        names += subprocess.run(
            [*words, f"--format={form}"], check=True, capture_output=True, text=True
        ).stdout.split()
    return names


def places() -> list[str]:
    """Networks and volumes that this process has made and not removed."""
    mine = new_name().rpartition(".")[0]
    return [name for name in all_names("network", "volume") if name.startswith(f"{mine}.")]


def group(image: str, folder: Path) -> EnvironmentSpec:
    """`store` keeps a page of the task's, `seed` fills a volume that `cache` serves; both on one port."""
    (folder / "page").mkdir(parents=True)
    (folder / "page" / "index.html").write_text("of the task\n")
    services = [
        served("store", image, files={str(folder / "page"): "/data"}, aliases=["store.example"]),
        TaskService(name="seed", image=image, command=["sh", "-c", "echo seeded > /v/x.txt"], volumes={"v": "/v"}),
        served("cache", image, volumes={"v": "/data"}, needs={"seed": "completed", "store": "healthy"}),
        TaskService(name="main", image=image, volumes={"v": "/shared"}, needs={"cache": "healthy"}),
        served("late", image, 9000, files={str(folder / "page"): "/data"}, needs={"main": "started"}),
    ]
    return EnvironmentSpec(image=image, group=ServiceGroup(services=services))


def test_services_reach_each_other_and_nothing_else(agent_image: str, tmp_path: Path) -> None:
    spec = group(agent_image, tmp_path)

    async def work() -> None:
        containers = ContainerPool(EnvironmentConfig(engine=ENGINE, memory_mb=512), os.environ)
        try:
            environment = await containers.start(spec)

            async def read(address: str) -> bytes:
                return (await environment.execute(FETCH.format(address), timeout=SOON)).output

            assert await read("store:8000/") == b"of the task\n"
            assert await read("store.example:8000/") == b"of the task\n"
            assert await read("cache:8000/x.txt") == b"seeded\n"
            assert await read("late:9000/") == b"of the task\n"
            assert b"Connection refused" in await read("127.0.0.1:8000/"), "each has a loopback of its own"
            assert (await environment.execute("cat /shared/x.txt", timeout=SOON)).output == b"seeded\n"
            routes = "while read -r name to rest; do [ $to = 00000000 ] && echo out; done < /proc/net/route"
            assert (await environment.execute(routes, timeout=SOON)).output == b""
            late = await environment.execute("sleep 600 & sleep 600", timeout=1.0)
            assert late.status == "timeout"
            assert await read("cache:8000/x.txt") == b"seeded\n", "the agent's container restarts alone"
            assert len(own_containers()) == 5
            assert len(places()) == 2
        finally:
            await containers.close()
        assert own_containers() == []
        assert places() == []

    asyncio.run(work())


def test_a_service_that_fails_is_named(agent_image: str) -> None:
    failing = TaskService(name="db", image=agent_image, command=["sh", "-c", "echo no disk; exit 3"])
    check = HealthCheck(command="false", interval_sec=0.1, retries=2)
    sick = TaskService(name="db", image=agent_image, command=["sleep", "600"], health=check)

    async def work() -> None:
        containers = ContainerPool(EnvironmentConfig(engine=ENGINE, memory_mb=512), os.environ)
        for service, message in (
            (failing, "Service db of the task has not ended well; .*no disk"),
            (sick, "healthy"),
        ):
            needs = {"db": "healthy" if service.health else "completed"}
            main = TaskService(name="main", image=agent_image, needs=needs)
            group = ServiceGroup(services=[service, main])
            with pytest.raises(EnvironmentFailedError, match=message):
                await containers._start(EnvironmentSpec(image=agent_image, group=group))
            assert (own_containers(), places()) == ([], [])
        await containers.close()

    asyncio.run(work())


def test_engines_without_groups_refuse_by_name(tmp_path: Path) -> None:
    program = tmp_path / "apptainer"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    spec = EnvironmentSpec(
        image="a:1", group=ServiceGroup(services=[TaskService(name="db", image="b"), served("main", "a")])
    )
    with pytest.raises(ConfigError, match=r"several containers \(db, main\), which apptainer cannot join"):
        check_image(EnvironmentConfig(engine="apptainer"), spec, {"PATH": str(tmp_path)})


RUN = """
import asyncio, os, sys, msgspec
from newskills.base.environment import EnvironmentSpec
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool

async def work():
    spec = msgspec.json.decode(sys.argv[1], type=EnvironmentSpec)
    environment = await ContainerPool(EnvironmentConfig(engine=sys.argv[2], memory_mb=512), os.environ).start(spec)
    await environment.execute("true", timeout=60)
    print("here", flush=True)
    await asyncio.sleep(600)

asyncio.run(work())
"""


def test_what_a_killed_run_leaves_goes_with_it(agent_image: str, tmp_path: Path) -> None:
    """Services are no processes of the run; a process that waits for its end removes them. Images stay until `prune`,
    and those that a living run works with stay then."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "Dockerfile").write_text(f"FROM {agent_image}\nARG WORD\nRUN echo $WORD > /word\n")
    image = f"{TASK_IMAGES}:test-{os.getpid()}"
    built = served("db", image, build=ImageBuild(folder=str(tmp_path / "build"), arguments={"WORD": "x"}))
    group = ServiceGroup(services=[built, TaskService(name="main", image=agent_image)])
    spec = msgspec.json.encode(EnvironmentSpec(image=agent_image, group=group)).decode()
    words = [sys.executable, "-c", RUN, spec, ENGINE]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "here\n"
        shown = ns(f"ns environments --engine={ENGINE}", cwd=tmp_path).stdout
        lines = [line.split() for line in shown.splitlines()]
        mine = [line for line in lines if f".{run.pid}." in line[1]]
        assert sorted((line[0], line[-1]) for line in mine) == [("container", "use")] * 2 + [("network", "use")]
        assert [line[-1] for line in lines if line[1] == image] == ["use"]
        run.kill()
    until = time.monotonic() + 300
    while any(f".{run.pid}." in name for name in all_names()) and time.monotonic() < until:
        time.sleep(0.5)
    assert [name for name in all_names() if f".{run.pid}." in name] == []
    subprocess.run([ENGINE, "tag", agent_image, f"{image}-same"], check=True)
    shown = ns(f"ns environments prune --engine={ENGINE}", cwd=tmp_path).stdout
    assert next(line.split()[0] for line in shown.splitlines() if image in line) == "image"
    assert "Nothing was removed. Remove it: ns environments prune --yes" in shown
    done = ns(f"ns environments prune {image} {image}-same --engine={ENGINE} --yes", cwd=tmp_path)
    assert next(line.split()[-1] for line in done.stdout.splitlines() if image in line) == "removed"
    there = [
        subprocess.run([ENGINE, "image", "inspect", name], check=False, capture_output=True).returncode == 0
        for name in (image, f"{image}-same", agent_image)
    ]
    assert there == [False, False, True], "another name of an image is not ours"
