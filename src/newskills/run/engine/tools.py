# SPDX-License-Identifier: Apache-2.0
"""The tools of a run: one toolbox for each distinct configuration, shared by all samples, closed with the run."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence

import msgspec

from newskills.base import aio
from newskills.base.aio import await_guarded
from newskills.base.errors import FatalToolError, NewskillsError
from newskills.base.protocols import Sandbox, ToolSpec
from newskills.base.records import Failure, Row
from newskills.run.planning.config import GenerationConfig
from newskills.tools.provider import ToolContext
from newskills.tools.toolbox import ProviderToolbox, ToolSettings, make_toolbox

MAX_ALIKE_FAILURES = 8
"""So many calls in a row that found their tool unusable, and it is not coming back."""

OnFatal = Callable[[NewskillsError], None]


def tool_settings(config: GenerationConfig) -> ToolSettings:
    """Return the part of the schema that says which tools there are."""
    return ToolSettings(
        modules=tuple(config.tool_modules or ()),
        overrides=config.tool_overrides,
        schema_overrides=config.schema_overrides,
    )


def list_tools(settings: ToolSettings, environ: Mapping[str, str]) -> tuple[ToolSpec, ...]:
    """Return what the model will be told of tools, found out before the first request: servers are started and ended
    again, once.

    Raises ConfigError, UnknownNameError, FatalToolError.
    """
    return _list_tools(msgspec.json.encode(settings), tuple(sorted(environ.items())))


@functools.lru_cache(maxsize=64)
def _list_tools(settings: bytes, environ: tuple[tuple[str, str], ...]) -> tuple[ToolSpec, ...]:
    async def listed() -> tuple[ToolSpec, ...]:
        wanted = msgspec.json.decode(settings, type=ToolSettings)
        toolbox = make_toolbox(wanted, ToolContext(environ=dict(environ)))
        try:
            await toolbox.open()
            return tuple(toolbox.specs())
        finally:
            await toolbox.close()

    return aio.run(listed)


class SharedToolbox:
    """A Toolbox that calls `on_fatal` where a tool turns out to be unusable: going on would waste model calls."""

    def __init__(self, toolbox: ProviderToolbox, on_fatal: OnFatal) -> None:
        self._toolbox, self._on_fatal = toolbox, on_fatal
        self._fatal = 0

    async def open(self) -> None:
        """Open the toolbox. Raises ConfigError, FatalToolError."""
        await self._toolbox.open()

    def specs(self) -> Sequence[ToolSpec]:
        return self._toolbox.specs()

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        try:
            result = await self._toolbox.execute(name, arguments, request_id)
        except FatalToolError as error:
            self._fatal += 1
            if self._fatal >= MAX_ALIKE_FAILURES:
                self._on_fatal(error)
            raise
        self._fatal = 0
        return result

    async def release(self, request_id: str) -> Row:
        return await self._toolbox.release(request_id)

    async def close(self) -> None:
        await self._toolbox.close()


class Toolboxes:
    """Hands the same toolbox to everyone who asks for the same tools in the same sandbox."""

    def __init__(self, environ: Mapping[str, str], on_fatal: OnFatal) -> None:
        self._environ, self._on_fatal = environ, on_fatal
        self._shared: dict[bytes, SharedToolbox] = {}

    def get(self, config: GenerationConfig, sandbox: Sandbox) -> SharedToolbox | None:
        """Return the shared toolbox of `config`; nothing is started. None for a run without tools. Raises ConfigError,
        UnknownNameError."""
        if not config.tool_modules:
            return None
        settings = tool_settings(config)
        key = msgspec.json.encode([settings, config.sandbox])
        if key not in self._shared:
            toolbox = make_toolbox(settings, ToolContext(environ=self._environ, sandbox=sandbox))
            self._shared[key] = SharedToolbox(toolbox, self._on_fatal)
        return self._shared[key]

    async def close(self) -> list[Failure]:
        """End all tools; return what went wrong with that."""
        shared, self._shared = list(self._shared.values()), {}
        outcomes = await asyncio.gather(*(await_guarded(toolbox.close()) for toolbox in shared))
        return [outcome for outcome in outcomes if isinstance(outcome, Failure)]
