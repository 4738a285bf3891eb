# SPDX-License-Identifier: Apache-2.0
"""Environments of several containers: they reach each other, start in order, and go together."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.environments.images import ENGINE, own_containers

from newskills.base.environment import EnvironmentSpec, HealthCheck, ImageBuild, Service, ServiceGroup
from newskills.base.errors import ConfigError, EnvironmentFailedError
from newskills.environments import check_image
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool
from newskills.environments.owners import LABEL, new_name

SOON = 20.0
FETCH = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{}\", timeout=5).read().decode(), end=\"\")'"
SERVE = "cp -r /data /site && cd /site && exec python3 -m http.server {port}"


def served(name: str, image: str, port: int = 8000, **more: object) -> Service:
    return Service(
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


def places() -> list[str]:
    """Networks and volumes that this process has made and not removed."""
    mine, left = new_name().rpartition(".")[0], []
    for kind in ("network", "volume"):
        words = [ENGINE, kind, "ls", f"--filter=label={LABEL}", "--format={{.Name}}"]
        shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        left += [name for name in shown if name.startswith(f"{mine}.")]
    return left


def group(image: str, folder: Path) -> EnvironmentSpec:
    """`store` keeps a page of the task's, `seed` fills a volume that `cache` serves; both on one port."""
    (folder / "page").mkdir(parents=True)
    (folder / "page" / "index.html").write_text("of the task\n")
    services = [
        served("store", image, files={str(folder / "page"): "/data"}, aliases=["store.example"]),
        Service(name="seed", image=image, command=["sh", "-c", "echo seeded > /v/x.txt"], volumes={"v": "/v"}),
        served("cache", image, volumes={"v": "/data"}, needs={"seed": "completed", "store": "healthy"}),
        Service(name="main", image=image, volumes={"v": "/shared"}, needs={"cache": "healthy"}),
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
