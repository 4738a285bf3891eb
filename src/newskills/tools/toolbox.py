# SPDX-License-Identifier: Apache-2.0
"""All tools of a run: built from settings, opened when first needed, called by the names that the model sees."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from inspect import isfunction
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.aio import await_guarded
from newskills.base.errors import (
    ConfigError,
    NewskillsError,
    ToolError,
    UnknownNameError,
    guard,
    suggest,
)
from newskills.base.protocols import ToolSpec
from newskills.base.records import Failure, Row
from newskills.base.registry import fold
from newskills.config.settings import read_config
from newskills.tools import REFERENCE, TOOLS, split_name
from newskills.tools.arguments import check_arguments
from newskills.tools.exposed import ExposedTool, expose_tool
from newskills.tools.provider import FunctionTool, ToolContext, ToolProvider

MAX_RESULT = 100_000
"""Characters of a result that the model is shown at most, whatever the tool itself allows."""
CUT = "\n<output cut>"


class ToolSettings(Struct, frozen=True, kw_only=True):
    """Which tools, and how.

    modules           built-in names, `module::Class`, `file.py::Class` or `::function`; `NAME=…` names it, so that
                      one class may be used twice
    overrides         {provider: {setting: value}}
    schema_overrides  {provider: {tool: {name, description, parameters: {parameter: {name, …}}}}}
    """

    modules: tuple[str, ...]
    overrides: Row = {}
    schema_overrides: Row = {}


class ToolUse(Struct):
    """What the calls of one sample cost, whatever the tools were."""

    num_tool_errors: int = 0
    tool_time: float = 0.0


class ProviderToolbox:
    """A Toolbox over providers. `open` starts them; `execute` does so itself. `close` may be called at any time."""

    def __init__(self, providers: Mapping[str, ToolProvider], schema_overrides: Row) -> None:
        self._providers = dict(providers)
        self._schema_overrides = schema_overrides
        self._tools: dict[str, ExposedTool] | None = None
        self._opening = asyncio.Lock()
        self._measured: dict[str, ToolUse] = {}

    async def open(self) -> None:
        """Open the tools; further calls do nothing. Raises ConfigError (names), FatalToolError (a tool cannot be
        used)."""
        async with self._opening:
            if self._tools is None:
                self._tools = await self._expose_tools()

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools as the model is told of them; empty before `open`."""
        return [tool.spec for tool in (self._tools or {}).values()]

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        """Call a tool and return its result. Raises ToolError (told to the model), and what ends the sample:
        FatalToolError, SandboxError and others."""
        await self.open()
        assert self._tools is not None
        measured = self._measured.setdefault(request_id, ToolUse())
        began = time.perf_counter()
        try:
            tool = self._tools.get(name)
            if tool is None:
                raise ToolError(f"There is no tool '{name}'{suggest(name, self._tools)}")
            return _truncate_result(await self._call(tool, arguments, request_id))
        except ToolError:
            measured.num_tool_errors += 1
            raise
        finally:
            measured.tool_time += time.perf_counter() - began

    async def release(self, request_id: str) -> Row:
        """Return `num_tool_errors`, `tool_time` (seconds, summed over calls) and, by provider, what it measured
        itself."""
        tool_use: Row = msgspec.to_builtins(self._measured.pop(request_id, ToolUse()))
        trouble: NewskillsError | None = None
        for key, provider in self._providers.items():
            try:
                own = await provider.release(request_id)
            except NewskillsError as error:
                trouble = error
            else:
                tool_use |= {key: own} if own else {}
        if trouble is not None:
            raise trouble
        return tool_use

    async def close(self) -> None:
        """Close every provider; the first error is raised once all were told."""
        outcomes = await asyncio.gather(*(p.close() for p in self._providers.values()), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _call(self, tool: ExposedTool, arguments: Row, request_id: str) -> str:
        own = tool.own_arguments(check_arguments(tool.spec.input_schema, arguments))
        provider = self._providers[tool.provider]

        async def work() -> str | NewskillsError:
            try:
                return await provider.execute(tool.own_name, own, request_id)
            except NewskillsError as error:
                return error

        outcome = await await_guarded(work())
        if isinstance(outcome, Failure):
            raise ToolError(f"{tool.spec.name} failed: {outcome.message}")
        if isinstance(outcome, NewskillsError):
            raise outcome
        return outcome

    async def _expose_tools(self) -> dict[str, ExposedTool]:
        listed = await asyncio.gather(*(provider.specs() for provider in self._providers.values()))
        exposed_by_name: dict[str, ExposedTool] = {}
        for key, specs in zip(self._providers, listed, strict=True):
            own = self._schema_overrides.get(key, {})
            names = [spec.name for spec in specs]
            for name in own:
                if name not in names:
                    raise ConfigError(f"schema_overrides.{key} has no tool '{name}'{suggest(name, names)}")
            for spec in specs:
                tool = expose_tool(spec, key, own.get(spec.name))
                if (other := exposed_by_name.get(tool.spec.name)) is not None:
                    raise ConfigError(
                        f"Two tools have the name '{tool.spec.name}': {other.provider}.{other.own_name} and "
                        f"{key}.{spec.name}.",
                        hint=f"Rename one: ++schema_overrides.{key}.{spec.name}.name=NEW_NAME.",
                    )
                exposed_by_name[tool.spec.name] = tool
        return exposed_by_name


def make_toolbox(settings: ToolSettings, context: ToolContext) -> ProviderToolbox:
    """Make a toolbox of the tools that `settings` name. Starts nothing.

    Raises UnknownNameError, ConfigError: unknown tools, providers and settings, each with did-you-mean.
    """
    specs: dict[str, str] = {}
    named_tools: dict[str, Any] = {}
    for module in settings.modules:
        own_name, spec = split_name(module)
        thing = _find_tool(spec)
        key = own_name or thing.__name__
        if key in named_tools:
            raise ConfigError(
                f"'{key}' is listed twice among the tools.", hint="Give one of them another name: NAME=TOOL."
            )
        named_tools[key], specs[key] = thing, spec
    overrides = _by_provider(settings.overrides, specs, "tool_overrides")
    providers = {
        key: _make_provider(key, thing, overrides.get(key, {}), context) for key, thing in named_tools.items()
    }
    return ProviderToolbox(providers, _by_provider(settings.schema_overrides, specs, "schema_overrides"))


def _find_tool(spec: str) -> Any:
    canonical = REFERENCE.get(spec, spec)
    if canonical.startswith("nemo_skills."):
        raise UnknownNameError("tool", spec, [*TOOLS, *REFERENCE])
    if "::" not in canonical and canonical.endswith(".py"):
        raise ConfigError(f"{spec}: the tool is not named.", hint=f"Write {spec}::Class or {spec}::function.")
    return TOOLS.get(canonical)


def _by_provider(values: Row, specs: Mapping[str, str], option: str) -> dict[str, Row]:
    """Return `values` under the providers' own names. Raises ConfigError."""
    overrides_by_provider: dict[str, Row] = {}
    for name, inner in values.items():
        key = _provider_key(name, specs, option)
        if not isinstance(inner, dict):
            raise ConfigError(f"{option}.{name}: expected a mapping, got {inner!r}.")
        overrides_by_provider[key] = {**overrides_by_provider.get(key, {}), **inner}
    return overrides_by_provider


def _provider_key(name: str, specs: Mapping[str, str], option: str) -> str:
    """Return the key of the provider that a user calls `name`: its own name, or how it was asked for. Raises
    ConfigError."""
    for key, spec in specs.items():
        if fold(name) in map(fold, (key, spec, spec.rpartition("::")[2], *_reference_names(spec))):
            return key
    raise ConfigError(f"{option}: there is no provider '{name}'{suggest(name, specs)}")


def _reference_names(spec: str) -> list[str]:
    return [older.rpartition("::")[2] for older, ours in REFERENCE.items() if ours == REFERENCE.get(spec, spec)]


def _make_provider(key: str, thing: Any, overrides: Row, context: ToolContext) -> ToolProvider:
    if isfunction(thing):
        if overrides:
            raise ConfigError(f"The tool {key} is a function and has no settings ({', '.join(overrides)}).")
        return FunctionTool(thing)
    kind = getattr(thing, "Config", None)
    if kind is None:
        if overrides:
            raise ConfigError(f"The tool {key} has no settings ({', '.join(overrides)}).")
        made = guard(thing)
    else:
        older: Mapping[str, str] = getattr(thing, "older_settings", {})
        values = {older.get(name, name): value for name, value in overrides.items()}
        config = read_config(kind, values, f"tool_overrides.{key}")
        made = guard(lambda: thing(config, context))
    if isinstance(made, Failure):
        raise ConfigError(f"The tool {key} cannot be created: {made.message}")
    if not isinstance(made, ToolProvider):
        raise ConfigError(f"{key} is not a tool: it needs `specs`, `execute`, `release` and `close`.")
    return made


def _truncate_result(text: str) -> str:
    if len(text) <= MAX_RESULT:
        return text
    return text[:MAX_RESULT] + CUT
