# SPDX-License-Identifier: Apache-2.0
"""The tools of a benchmark behind a resources server of NeMo Gym: `POST /TOOL`, with a state for each session."""

from __future__ import annotations

import os
import uuid

from newskills.base.errors import FatalToolError, NewskillsError, ToolError
from newskills.base.records import Row
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.sandboxes import Sandboxes
from newskills.run.engine.tools import SharedToolbox, Toolboxes
from newskills.run.planning.config import GenerationConfig

COOKIE_NAME = "newskills_session"


class GymTools:
    """Tools by the names that the rows offer. Their words to the model are those of an evaluation."""

    def __init__(self, config: GenerationConfig) -> None:
        """Make the tools; nothing is started. Raises ConfigError, UnknownNameError."""
        self._builder = RunBuilder(os.environ)
        self._sandboxes = Sandboxes(self._builder)
        self._toolboxes = Toolboxes(os.environ, lambda _: None)
        self._config = config
        self._sandbox = self._sandboxes.get(config.sandbox)
        self._tools: SharedToolbox | None = self._toolboxes.get(config, self._sandbox)
        self._lost: dict[str, str] = {}

    async def start(self) -> None:
        """Start what the tools need. Raises ConfigError, SandboxError, FatalToolError."""
        if self._tools is not None:
            if self._config.needs_sandbox:
                await self._sandbox.start()
            await self._tools.open()

    def has(self, name: str) -> bool:
        return self._tools is not None and any(spec.name == name for spec in self._tools.specs())

    async def call(self, name: str, arguments: Row, session: str) -> str:
        """Return the result of a call. A tool that failed on its own account leaves the session without a verdict."""
        assert self._tools is not None
        try:
            return await self._tools.execute(name, arguments, session)
        except NewskillsError as error:
            if not isinstance(error, ToolError) or isinstance(error, FatalToolError):
                self._lost[session] = str(error)
            return f"Error: {error.message}"

    async def end(self, session: str) -> str:
        """Give up the state of a session; return why it can have no verdict, or an empty text."""
        if self._tools is not None:
            await self._tools.release(session)
        return self._lost.pop(session, "")

    async def close(self) -> None:
        await self._toolboxes.close()
        await self._sandboxes.close()
        self._builder.close()


def session_of(cookie_header: str) -> str:
    """Return the session that the cookies name, or a new one."""
    for part in cookie_header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE_NAME and value:
            return value
    return uuid.uuid4().hex
