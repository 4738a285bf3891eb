# SPDX-License-Identifier: Apache-2.0
"""The sandbox of the library, as newskills configures it and in the words of its own errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from newskills.base.protocols import Execution, ExecutionResult
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.own_errors import own_errors
from newskills_sandbox.sessions import AsyncSandbox
from newskills_sandbox.settings import SandboxSettings, SessionLimits, SettingWords

WORDS = SettingWords(
    setting="++sandbox.{}",
    doctor="`ns sandbox doctor` shows what is missing; --sandbox=none runs code without isolation, at your own risk.",
)


class LocalSandbox(AsyncSandbox):
    """Implements `Sandbox` with processes of this machine. Belongs to the loop that starts it."""

    def __init__(
        self,
        config: SandboxConfig,
        environ: Mapping[str, str] | None = None,
        *,
        folders: Mapping[str, str] | None = None,
    ) -> None:
        """Create the sandbox; `folders`: places where sessions see folders of this machine, with programs that map more
        addresses than they use memory."""
        settings = settings_of(config)
        if folders:
            settings = dataclasses.replace(settings, folders=folders, address_space=False)
        super().__init__(settings, environ)

    async def start(self) -> None:
        """Start the sandbox, unless it runs. Raises ConfigError, SandboxError."""
        with own_errors():
            await super().start()

    async def execute(self, execution: Execution) -> ExecutionResult:
        """Execute code in this sandbox. Raises ConfigError, ExecutionRefusedError, SandboxError."""
        with own_errors():
            return await super().execute(execution)


def settings_of(config: SandboxConfig) -> SandboxSettings:
    """Return the settings of a sandbox in this process."""
    limits = config.limits
    return SandboxSettings(
        isolation=config.isolation,
        network=config.network,
        python=config.python,
        preload=config.preload,
        packages=config.packages,
        data_dir=config.data_dir,
        lean=config.lean,
        concurrency=config.concurrency,
        max_sessions=config.max_sessions,
        session_timeout=config.session_timeout,
        free_memory_mb=config.free_memory_mb,
        limits=SessionLimits(
            memory_mb=limits.memory_mb,
            disk_mb=limits.disk_mb,
            files=limits.files,
            processes=limits.processes,
            open_files=limits.open_files,
            timeout=limits.timeout,
        ),
        words=WORDS,
    )
