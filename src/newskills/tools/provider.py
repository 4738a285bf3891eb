# SPDX-License-Identifier: Apache-2.0
"""What a tool provider is: a class that offers one or more tools, or a plain function that is one."""

from __future__ import annotations

import asyncio
import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, ToolError
from newskills.base.protocols import Sandbox, ToolSpec
from newskills.base.records import Row

THREADS = 16
"""Calls of one function at once; they are not the loop's own threads, which write files."""


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a provider may use.

    environ  where keys are looked up: secrets are named in settings, never written there
    sandbox  where code runs; None while tools are only listed
    """

    environ: Mapping[str, str] = {}
    sandbox: Sandbox | None = None


@runtime_checkable
class ToolProvider(Protocol):
    """Tools that share settings and state. Subclass it for the two hooks that most providers do not need.

    A class with a frozen struct `Config` beside it is made as `Class(config, context)`, one without as `Class()`.
    Belongs to the event loop of its first call.
    """

    async def specs(self) -> Sequence[ToolSpec]:
        """Return the tools, under their own names. Raises ConfigError, FatalToolError."""
        ...

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        """Return the text for the model. Raises ToolError (told to the model), FatalToolError or SandboxError (ends the
        sample unscored); any other exception is told to the model as the tool's failure."""
        ...

    async def release(self, request_id: str) -> Row:
        """Forget the state kept for a sample and return what was measured for it."""
        return {}

    async def close(self) -> None:
        """Close the provider and leave nothing behind: no session, no process, no connection."""
        return


class FunctionTool(ToolProvider):
    """A function as a tool: its name, docstring and annotations are what the model is told.

    Coroutine functions are awaited, others run in threads of their own. A result that is no text is sent as JSON.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._threads: ThreadPoolExecutor | None = None
        self._arguments = _arguments_of(function)

    async def specs(self) -> Sequence[ToolSpec]:
        schema = msgspec.json.schema(self._arguments)
        shared = schema.pop("$defs")
        flat = {key: value for key, value in shared.pop(self._arguments.__name__).items() if key != "title"}
        if shared:
            flat["$defs"] = shared
        described = inspect.getdoc(self._function) or ""
        return [ToolSpec(name=self._function.__name__, description=described, input_schema=flat)]

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        """Execute a tool; texts are returned as they are, other results as JSON. Raises ToolError for arguments
        that do not fit."""
        try:
            struct = msgspec.convert(arguments, self._arguments)
        except msgspec.ValidationError as error:
            raise ToolError(f"The arguments do not fit: {error}.") from error
        values = {field: getattr(struct, field) for field in self._arguments.__struct_fields__}
        if inspect.iscoroutinefunction(self._function):
            result = await self._function(**values)
        else:
            self._threads = self._threads or ThreadPoolExecutor(THREADS, self._function.__name__)
            work = functools.partial(self._function, **values)
            result = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        if isinstance(result, str):
            return result
        return msgspec.json.encode(result).decode()

    async def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _arguments_of(function: Callable[..., Any]) -> type[Struct]:
    """Return a struct with a field for each parameter. Raises ConfigError for a function that cannot be described."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        fields: list[Any] = []
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(f"parameter '{name}' cannot be given by name")
            default = () if parameter.default is parameter.empty else (parameter.default,)
            fields.append((name, hints.get(name, Any), *default))
        struct = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        msgspec.json.schema(struct)
    except (TypeError, NameError) as error:
        raise ConfigError(
            f"The function {function.__name__} cannot be a tool: {error}.",
            hint="Give each parameter a name and a JSON-like type.",
        ) from error
    return struct
