# SPDX-License-Identifier: Apache-2.0
"""The environments of a run: one pool for each distinct configuration, made when first needed, shared by all."""

from __future__ import annotations

import asyncio
from typing import Protocol

from newskills.base.aio import await_guarded
from newskills.base.environment import AgentEnvironment, AgentEnvironments, EnvironmentSpec
from newskills.base.records import Failure
from newskills.environments.config import EnvironmentConfig


class EnvironmentFactory(Protocol):
    """Makes a pool without starting anything."""

    def environments(self, config: EnvironmentConfig) -> AgentEnvironments: ...


class SharedPool:
    """An `AgentEnvironments` that looks for its engine at the first `start`."""

    def __init__(self, factory: EnvironmentFactory, config: EnvironmentConfig) -> None:
        self._factory, self._config = factory, config
        self._pool: AgentEnvironments | None = None

    async def start(self, spec: EnvironmentSpec) -> AgentEnvironment:
        """Start an environment in the pool, which the first call makes. Raises ConfigError, EnvironmentFailedError."""
        if self._pool is None:
            self._pool = self._factory.environments(self._config)
        return await self._pool.start(spec)

    def expect(self, spec: EnvironmentSpec) -> None:
        if self._pool is not None:
            self._pool.expect(spec)

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()


class EnvironmentPools:
    """Hands the same pool to everyone who asks for the same configuration."""

    def __init__(self, factory: EnvironmentFactory) -> None:
        self._factory = factory
        self._shared: dict[EnvironmentConfig, SharedPool] = {}

    def get(self, config: EnvironmentConfig) -> SharedPool:
        """Return the shared pool of `config`; nothing is started."""
        if config not in self._shared:
            self._shared[config] = SharedPool(self._factory, config)
        return self._shared[config]

    async def close(self) -> list[Failure]:
        """End all environments; return what went wrong with that."""
        shared, self._shared = list(self._shared.values()), {}
        outcomes = await asyncio.gather(*(await_guarded(pool.close()) for pool in shared))
        return [outcome for outcome in outcomes if outcome is not None]
