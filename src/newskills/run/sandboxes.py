# SPDX-License-Identifier: Apache-2.0
"""The sandboxes of a run: one for each distinct configuration, started when first needed, shared by all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from newskills.base.errors import ExecutionRefusedError, NewskillsError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Sandbox
from newskills.sandbox.config import SandboxConfig

ALIKE = 8
"""So many failures of the sandbox in a row, and it is not coming back."""


class Maker(Protocol):
    """Builds a sandbox without starting it."""

    def sandbox(self, config: SandboxConfig) -> Sandbox: ...


@runtime_checkable
class Startable(Protocol):
    """A sandbox with something to do before the first cell."""

    async def start(self) -> None: ...


class SharedSandbox:
    """A Sandbox that is built and started at the first `start` or `execute`, once.

    `on_fatal` is called where it cannot start, and where `ALIKE` executions in a row failed on its own account:
    going on would spend model calls on samples that can only end unscored.
    """

    def __init__(self, make: Callable[[], Sandbox], on_fatal: Callable[[NewskillsError], None]) -> None:
        self._make, self._on_fatal = make, on_fatal
        self._sandbox: Sandbox | None = None
        self._starting = asyncio.Lock()
        self._failed = 0

    async def start(self) -> None:
        """Raises ConfigError, SandboxError."""
        await self._started()

    async def execute(self, execution: Execution) -> ExecutionResult:
        sandbox = await self._started()
        try:
            result = await sandbox.execute(execution)
        except ExecutionRefusedError:
            raise
        except SandboxError as error:
            self._failed += 1
            if self._failed >= ALIKE:
                self._on_fatal(error)
            raise
        self._failed = 0
        return result

    async def delete_session(self, session_id: str) -> None:
        if self._sandbox is not None:
            await self._sandbox.delete_session(session_id)

    async def close(self) -> None:
        """Idempotent."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await sandbox.close()

    async def _started(self) -> Sandbox:
        async with self._starting:
            if self._sandbox is None:
                self._sandbox = await self._start()
            return self._sandbox

    async def _start(self) -> Sandbox:
        try:
            sandbox = self._make()
            if isinstance(sandbox, Startable):
                try:
                    await sandbox.start()
                except BaseException:
                    await sandbox.close()
                    raise
        except NewskillsError as error:
            self._on_fatal(error)
            raise
        return sandbox


class Sandboxes:
    """Hands the same sandbox to everyone who asks for the same configuration."""

    def __init__(self, maker: Maker, on_fatal: Callable[[NewskillsError], None] = lambda error: None) -> None:
        self._maker, self._on_fatal = maker, on_fatal
        self._shared: dict[SandboxConfig, SharedSandbox] = {}

    def get(self, config: SandboxConfig) -> SharedSandbox:
        """Starts nothing."""
        if config not in self._shared:
            self._shared[config] = SharedSandbox(lambda: self._maker.sandbox(config), self._on_fatal)
        return self._shared[config]

    async def close(self) -> None:
        """Ends all sandboxes with their sessions; the first trouble is raised once all were told."""
        shared, self._shared = list(self._shared.values()), {}
        outcomes = await asyncio.gather(*(sandbox.close() for sandbox in shared), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
