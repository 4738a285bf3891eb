# SPDX-License-Identifier: Apache-2.0
"""The sandboxes of a run: one for each distinct configuration, started when first needed, shared by all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from newskills.base.aio import await_guarded, backoff_seconds
from newskills.base.errors import ExecutionRefusedError, NewskillsError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Sandbox
from newskills.base.records import Failure
from newskills.sandbox.config import SandboxConfig

MAX_ALIKE_FAILURES = 8
"""So many failures of the sandbox one after the other (those at the same time count once): it is not coming back."""

OnFatal = Callable[[NewskillsError], None]


class SandboxFactory(Protocol):
    """Builds a sandbox without starting it."""

    def sandbox(self, config: SandboxConfig) -> Sandbox: ...


@runtime_checkable
class StartableSandbox(Protocol):
    """A sandbox with something to do before the first cell."""

    async def start(self) -> None: ...


class SharedSandbox:
    """A Sandbox that is built and started at the first `start` or `execute`, once.

    `on_fatal` is called where it cannot start, and where `MAX_ALIKE_FAILURES` executions in a row failed on its own
    account: going on would spend model calls on samples that can only end unscored.
    """

    def __init__(self, make: Callable[[], Sandbox], on_fatal: OnFatal) -> None:
        self._make, self._on_fatal = make, on_fatal
        self._sandbox: Sandbox | None = None
        self._starting = asyncio.Lock()
        self._failed = 0
        self._failed_at = 0.0
        self._proven = False

    async def start(self, patience: float = 0.0) -> None:
        """Start the sandbox once; `patience`: seconds to wait for one that is not up yet.

        Raises ConfigError, SandboxError.
        """
        async with self._starting:
            if self._sandbox is not None:
                return
            try:
                self._sandbox = await self._start_patiently(patience)
            except NewskillsError as error:
                self._on_fatal(error)
                raise

    async def execute(self, execution: Execution) -> ExecutionResult:
        if self._sandbox is None:
            await self.start()
        assert self._sandbox is not None
        began = time.monotonic()
        try:
            result = await self._sandbox.execute(execution)
        except SandboxError as error:
            self._count(error, began)
            raise
        self._proven = True
        self._failed = 0
        return result

    async def delete_session(self, session_id: str) -> None:
        if self._sandbox is not None:
            await self._sandbox.delete_session(session_id)

    async def close(self) -> None:
        """Close the sandbox; further calls do nothing."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await sandbox.close()

    def _count(self, error: SandboxError, began: float) -> None:
        if isinstance(error, ExecutionRefusedError) and self._proven:
            return  # this one request made no sense
        if began > self._failed_at:
            self._failed_at = time.monotonic()
            self._failed += 1
        if self._failed >= MAX_ALIKE_FAILURES:
            self._on_fatal(error)

    async def _start_patiently(self, patience: float) -> Sandbox:
        until = time.monotonic() + patience
        tries = 0
        while True:
            try:
                return await self._start_once()
            except SandboxError as error:
                tries += 1
                wait = backoff_seconds(tries, cap=10.0)
                if not error.retryable or time.monotonic() + wait > until:
                    raise
                await asyncio.sleep(wait)

    async def _start_once(self) -> Sandbox:
        sandbox = self._make()
        if isinstance(sandbox, StartableSandbox):
            try:
                await sandbox.start()
            except BaseException:
                await sandbox.close()
                raise
        return sandbox


class Sandboxes:
    """Hands the same sandbox to everyone who asks for the same configuration."""

    def __init__(self, maker: SandboxFactory, on_fatal: OnFatal = lambda error: None) -> None:
        self._maker, self._on_fatal = maker, on_fatal
        self._shared: dict[SandboxConfig, SharedSandbox] = {}

    def get(self, config: SandboxConfig) -> SharedSandbox:
        """Return the shared sandbox of `config`; nothing is started."""
        if config not in self._shared:
            self._shared[config] = SharedSandbox(lambda: self._maker.sandbox(config), self._on_fatal)
        return self._shared[config]

    async def close(self) -> list[Failure]:
        """End all sandboxes with their sessions; return what went wrong with that."""
        shared, self._shared = list(self._shared.values()), {}
        outcomes = await asyncio.gather(*(await_guarded(sandbox.close()) for sandbox in shared))
        return [outcome for outcome in outcomes if outcome is not None]
