# SPDX-License-Identifier: Apache-2.0
"""The containers of a run: so many at once, none left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping

from msgspec import structs

from newskills.base.aio import Gate, backoff_seconds
from newskills.base.environment import MIB, AgentEnvironment, EnvironmentSpec, image_of
from newskills.base.errors import ConfigError, EnvironmentFailedError, NewskillsError
from newskills.environments.config import EnvironmentConfig
from newskills.environments.container import HOUSEKEEPING, Container, remove_container
from newskills.environments.disk import Storage
from newskills.environments.engines import find_engine
from newskills.environments.engines.engine import EngineProgram
from newskills.environments.images import ImageBuilder
from newskills.environments.owners import is_left_over
from newskills.environments.programs import run_program
from newskills.environments.prune import Lifeline
from newskills.environments.services import places_of
from newskills_sandbox.memory import memory_left

TRIES = 3


def with_image(config: EnvironmentConfig, spec: EnvironmentSpec) -> EnvironmentSpec:
    """Return `spec` with the image that the configuration names, if it does. Raises ConfigError for a formatter
    that is none."""
    if config.container_formatter and "{" not in config.container_formatter:
        raise ConfigError(
            f"++environment.container_formatter={config.container_formatter} names one image for all tasks.",
            hint="Put {instance_id} where the task's name belongs, or use ++environment.image for one image.",
        )
    if config.image or config.container_formatter:
        image = config.image or image_of(config.container_formatter, spec.fields)
        spec = structs.replace(spec, image=image, build="")
    if spec.image.startswith(("./", "../", "~")):
        spec = structs.replace(spec, image=os.path.abspath(os.path.expanduser(spec.image)))
    return spec


class ContainerPool:
    """Implements `AgentEnvironments` by the engine that the configuration names."""

    def __init__(self, config: EnvironmentConfig, environ: Mapping[str, str]) -> None:
        """Find the engine for `config`. Raises ConfigError where none is installed."""
        self._config, self._environ = config, environ
        self._engine: EngineProgram = find_engine(config, environ)
        self._gate = Gate(config.at_once)
        self._alive: set[Container] = set()
        self._storage = Storage(config.disk_mb * MIB)
        self._images = ImageBuilder(self._engine, environ)
        self._cleared = asyncio.Lock()
        self._clear = False
        self._lifeline: Lifeline | None = None
        self._warm: list[tuple[EnvironmentSpec, asyncio.Task[Container]]] = []

    async def start(self, spec: EnvironmentSpec) -> AgentEnvironment:
        """Start a container for `spec`, in up to three tries. Raises ConfigError (image), EnvironmentFailedError."""
        await self._remove_left_over()
        spec = with_image(self._config, spec)
        if (warm := self._claim(spec)) is not None:
            with contextlib.suppress(EnvironmentFailedError):  # started anew below
                return await warm
        if not self._gate.try_enter():
            await self._give_way()
            await self._gate.acquire()
        try:
            for attempt in range(1, TRIES):
                try:
                    return await self._start(spec)
                except EnvironmentFailedError:
                    await asyncio.sleep(backoff_seconds(attempt))
            return await self._start(spec)
        except BaseException:
            self._gate.release()
            raise

    def expect(self, spec: EnvironmentSpec) -> None:
        """Begin to start a container that will be asked for soon: no more than the configuration allows, and only where
        there is a place and memory for it."""
        with contextlib.suppress(NewskillsError):
            spec = with_image(self._config, spec)
            if len(self._warm) < self._config.warm and self._has_memory(spec) and self._gate.try_enter():
                self._warm.append((spec, asyncio.create_task(self._start_ahead(spec))))

    async def close(self) -> None:
        for _, warm in self._warm:
            warm.cancel()
        await asyncio.gather(*(warm for _, warm in self._warm), return_exceptions=True)
        self._warm.clear()
        await asyncio.gather(*(container.stop() for container in tuple(self._alive)))
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline = None
        if self._clear:  # a killed run's engine may have been at work on one when this run began
            await remove_left_over(self._engine, self._environ)

    async def _start_ahead(self, spec: EnvironmentSpec) -> Container:
        try:
            await self._remove_left_over()
            return await self._start(spec)
        except BaseException:
            self._gate.release()
            raise

    def _claim(self, spec: EnvironmentSpec) -> asyncio.Task[Container] | None:
        """Return the container that was started ahead for `spec`, if one was."""
        for number, (expected, warm) in enumerate(self._warm):
            if expected == spec:
                del self._warm[number]
                return warm
        return None

    async def _give_way(self) -> None:
        """Stop a container that was started ahead, where one that is needed now has no place: a task may start a second
        one before the next begins."""
        if self._warm:
            _, warm = self._warm.pop()
            with contextlib.suppress(EnvironmentFailedError):
                await (await warm).stop()

    def _has_memory(self, spec: EnvironmentSpec) -> bool:
        """Return whether this machine has the memory that the environment may take."""
        containers = 1 if spec.group is None else len(spec.group.services)
        return free_memory() >= max(self._config.memory_mb, spec.memory_mb) * containers * MIB

    async def _start(self, spec: EnvironmentSpec) -> Container:
        spec = structs.replace(spec, offline=spec.offline or not self._config.network)
        await self._images.ensure(spec, max(self._config.start_timeout, spec.build_timeout))
        if spec.group is not None and self._lifeline is None:
            self._lifeline = Lifeline(self._engine, self._environ)
        container = Container(self._engine, spec, self._environ, self._storage, self._forget)
        try:
            await container.start(self._config.start_timeout)
        except BaseException:
            await container.stop()
            raise
        self._alive.add(container)
        return container

    def _forget(self, container: Container) -> None:
        if container in self._alive:
            self._alive.remove(container)
            self._gate.release()

    async def _remove_left_over(self) -> None:
        """Remove containers of runs that were killed, once, before the first start. `close` looks again."""
        async with self._cleared:
            if self._clear:
                return
            self._clear = True
            await remove_left_over(self._engine, self._environ)


def free_memory() -> int:
    """Return the bytes of memory that programs may still take on this machine; 0 where it does not tell."""
    with contextlib.suppress(OSError):
        return memory_left()[0]
    return 0


async def remove_left_over(engine: EngineProgram, environ: Mapping[str, str]) -> list[str]:
    """Remove containers, networks and volumes whose process on this machine is no more; return their names. Raises
    EnvironmentFailedError."""
    shown = await run_program(engine.names(), timeout=HOUSEKEEPING, environ=environ)
    lines = shown.output.decode("utf-8", "replace").split("\n")
    names = [words[0] for line in lines if (words := line.split()) and is_left_over(words[0])]
    for name in names:
        await remove_container(engine, name, environ)
    if engine.groups is not None:
        for name, argv in await places_of(engine.groups, environ):
            if is_left_over(name):
                await run_program(argv, timeout=HOUSEKEEPING, environ=environ)
                names.append(name)
    return names
