# SPDX-License-Identifier: Apache-2.0
"""Containers that are started ahead: claimed by the task that they are for, never in the way of others."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.environments.images import ENGINE, own_containers

from newskills.base.environment import EnvironmentSpec
from newskills.environments import containers as room
from newskills.environments.config import EnvironmentConfig
from newskills.environments.container import Container
from newskills.environments.containers import ContainerPool

SOON = 60.0


def pool(**settings: object) -> ContainerPool:
    return ContainerPool(EnvironmentConfig(engine=ENGINE, **{"memory_mb": 256, **settings}), os.environ)


async def _appeared(number: int) -> list[str]:
    async with asyncio.timeout(SOON * 5):
        while len(names := own_containers()) != number:
            await asyncio.sleep(0.1)
    return names


def test_a_container_is_ready_before_its_task(agent_image: str) -> None:
    async def work() -> None:
        containers = pool(at_once=2, warm=2)
        first = EnvironmentSpec(image=agent_image, variables={"TASK": "first"})
        second = EnvironmentSpec(image=agent_image, variables={"TASK": "second"})
        other = EnvironmentSpec(image=agent_image, variables={"TASK": "other"})
        try:
            begun = await containers.start(first)
            containers.expect(second)
            containers.expect(other)  # there is no third place
            (ahead,) = set(await _appeared(2)) - {getattr(begun, "name", "")}
            claimed = await containers.start(second)
            assert isinstance(claimed, Container)
            assert claimed.name == ahead
            assert (await claimed.execute("echo $TASK", timeout=SOON)).output == b"second\n"
            await claimed.stop()
            containers.expect(second)
            await _appeared(2)
            needed = await containers.start(other)  # takes the place of the one that waits
            assert (await needed.execute("echo $TASK", timeout=SOON)).output == b"other\n"
            assert len(own_containers()) == 2
        finally:
            await containers.close()
        assert own_containers() == []

    asyncio.run(work())


def test_memory_bounds_what_is_started_ahead(agent_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_memory", lambda: 255 << 20)

    async def work() -> None:
        containers = pool(warm=2)
        containers.expect(EnvironmentSpec(image=agent_image))
        await asyncio.sleep(0)
        assert containers._warm == []
        await containers.close()

    asyncio.run(work())
    assert own_containers() == []
