# SPDX-License-Identifier: Apache-2.0
"""Tools of an MCP server, over stdio or streamable HTTP, through the official SDK (`newskills[tools]`).

https://modelcontextprotocol.io/specification. Secrets travel by name only: a stdio server gets the environment
variables that are listed, and `${NAME}` in `url` and `headers` is filled in when the connection is made.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, FatalToolError, NewskillsError, ToolError, guard, suggest
from newskills.base.protocols import ToolSpec
from newskills.base.records import Failure, Row
from newskills.base.registry import load_attr
from newskills.tools.exposed import without_parameters
from newskills.tools.mcp_link import McpLink, ServerLog, import_mcp, is_lost
from newskills.tools.provider import ToolContext, ToolProvider

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

T = TypeVar("T")

DEATHS = 3
"""So many ends of the server without an answered call between them, and it is not coming back."""
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})


class McpConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++tool_overrides.McpTool.*`: one server, `command` with `args` (stdio) or `url` (streamable HTTP)."""

    command: Annotated[str, Meta(description="program of a stdio server")] = ""
    args: Annotated[tuple[str, ...], Meta(description="its arguments")] = ()
    working_dir: Annotated[str, Meta(description="working folder of the program")] = ""
    environment: Annotated[tuple[str, ...], Meta(description="names of environment variables to pass on")] = ()
    url: Annotated[str, Meta(description="address of an HTTP server")] = ""
    headers: Annotated[dict[str, str], Meta(description="HTTP headers; ${NAME} is an environment variable")] = {}
    enabled_tools: Annotated[tuple[str, ...] | None, Meta(description="only these tools; null = all")] = None
    disabled_tools: Annotated[tuple[str, ...], Meta(description="tools to leave out")] = ()
    hide_args: Annotated[
        dict[str, tuple[str, ...]], Meta(description="tool → arguments to hide from the model")
    ] = {}
    arguments: Annotated[
        dict[str, Row], Meta(description="tool → arguments with fixed values, hidden from the model")
    ] = {}
    init_hook: Annotated[
        str, Meta(description="module::function or file.py::function (config, environ) → config, called first")
    ] = ""
    output_formatter: Annotated[
        str, Meta(description="function (CallToolResult) → text or JSON value for the model")
    ] = ""
    timeout: Annotated[float, Meta(gt=0, description="time limit of a call in seconds")] = 60.0
    start_timeout: Annotated[float, Meta(gt=0, description="time limit of the server's start in seconds")] = 60.0


class McpTool(ToolProvider):
    """One connection for all samples, made when first needed.

    An error that the tool reports and a call that takes too long are told to the model. A server that ended is
    started again and the call repeated, once; one that cannot be started, or ends again and again, is fatal.
    """

    Config = McpConfig

    def __init__(self, config: McpConfig, context: ToolContext) -> None:
        """Load the hooks and check the settings. Raises ConfigError: neither or both of command and url, a secret
        written out, hooks that are not there."""
        self._environ = context.environ
        if config.output_formatter:
            self._format = load_attr(config.output_formatter, "output formatter")
        else:
            self._format = None
        # As the user wrote it: a hook may have put a key into the address.
        self._where = config.url or " ".join([config.command, *config.args]) or f"of {config.init_hook}"
        self._config = _apply_init_hook(config, context.environ)
        _check_config(self._config)
        self._link: McpLink | None = None
        self._connecting = asyncio.Lock()
        self._deaths = 0

    async def specs(self) -> Sequence[ToolSpec]:
        """Return the enabled tools of the server. Raises ConfigError for a setting that names a tool which the server
        lacks, FatalToolError (no server)."""
        tools = await self._request(_all_tools)
        config, names = self._config, [tool.name for tool in tools]
        for name in (*(config.enabled_tools or ()), *config.disabled_tools, *config.hide_args, *config.arguments):
            if name not in names:
                raise ConfigError(f"The MCP server {self._where} has no tool '{name}'{suggest(name, names)}")
        return [
            msgspec.structs.replace(
                tool, input_schema=without_parameters(tool.input_schema, self._hidden_arguments(tool.name))
            )
            for tool in tools
            if tool.name not in config.disabled_tools
            and (config.enabled_tools is None or tool.name in config.enabled_tools)
        ]

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        """Call a tool and return the result as a text.

        Raises ToolError where the tool says that it failed, FatalToolError (no server).
        """
        hidden = self._hidden_arguments(name)
        visible_arguments = {key: value for key, value in arguments.items() if key not in hidden}
        visible_arguments |= self._config.arguments.get(name, {})

        async def call(client: Client) -> CallToolResult:
            return await client.call_tool(name, visible_arguments, read_timeout_seconds=self._config.timeout)

        result = await self._request(call)
        if self._format is not None:
            shown = self._format(result)
            if isinstance(shown, str):
                return shown
            return msgspec.json.encode(shown).decode()
        text = _text_of(result)
        if result.is_error:
            raise ToolError(text or f"{name} failed.")
        return text

    async def close(self) -> None:
        async with self._connecting:
            link, self._link = self._link, None
        if link is not None:
            await link.close()

    def _hidden_arguments(self, tool: str) -> set[str]:
        return {*self._config.hide_args.get(tool, ()), *self._config.arguments.get(tool, ())}

    async def _request(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work` with a connected client, once more with a new connection where the first one is lost."""
        library = import_mcp()
        for last in (False, True):
            link = await self._ensure_link()
            try:
                result = await work(link.client)
            except library.MCPError as error:
                if error.code == library.types.REQUEST_TIMEOUT:
                    raise ToolError(f"No answer within {self._config.timeout:g} seconds.") from error
                if not is_lost(error):
                    raise ToolError(link.mask_secrets(error.message)) from error
                await self._drop(link)
                if last:
                    raise ToolError("The tool's server ended during the call.") from error
            else:
                self._deaths = 0
                return result
        raise AssertionError("unreachable")

    async def _ensure_link(self) -> McpLink:
        async with self._connecting:
            if self._link is not None and self._link.has_ended:
                await self._link.close()
                self._link = None
                self._deaths += 1
            if self._link is None:
                self._link = await self._connect()
            return self._link

    async def _connect(self) -> McpLink:
        if self._deaths >= DEATHS:
            raise FatalToolError(f"The MCP server {self._where} ended {self._deaths} times in a row.")
        secrets = [self._variable(name) for name in self._config.environment]
        for text in (self._config.url, *self._config.headers.values()):
            secrets += [self._variable(name) for name in _VARIABLE.findall(text)]
        log = ServerLog()
        link = McpLink(self._client(log), log, secrets)
        try:
            await link.open(self._config.start_timeout)
        except BaseException as error:
            await link.close()
            if isinstance(error, NewskillsError):
                raise FatalToolError(f"The MCP server {self._where} cannot be used: {error.message}") from error
            raise
        return link

    async def _drop(self, link: McpLink) -> None:
        async with self._connecting:
            if self._link is link:
                self._link = None
                self._deaths += 1
        await link.close()

    @asynccontextmanager
    async def _client(self, log: ServerLog) -> AsyncIterator[Client]:
        config, library = self._config, import_mcp()
        limit = config.start_timeout
        if config.command:
            server = library.StdioServerParameters(
                command=config.command,
                args=list(config.args),
                env={name: self._variable(name) for name in config.environment},
                cwd=config.working_dir or None,
                encoding_error_handler="replace",
            )
            transport = library.stdio_client(server, errlog=log.file)
            async with library.Client(transport, read_timeout_seconds=limit, cache=None) as client:
                yield client
            return
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {name: self._fill_variables(value) for name, value in config.headers.items()}
        timeout = httpx2.Timeout(30.0, read=max(config.timeout, limit) + 30.0)
        async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:
            transport = streamable_http_client(self._fill_variables(config.url), http_client=http)
            async with library.Client(transport, read_timeout_seconds=limit, cache=None) as client:
                yield client

    def _fill_variables(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: self._variable(match[1]), text)

    def _variable(self, name: str) -> str:
        if (value := self._environ.get(name)) is None:
            raise ConfigError(
                f"The MCP server {self._where} needs the environment variable {name}, which is not set.",
                hint=f"Run: export {name}=…",
            )
        return value


async def _all_tools(client: Client) -> list[ToolSpec]:
    all_specs: list[ToolSpec] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        all_specs += [
            ToolSpec(name=tool.name, description=tool.description or "", input_schema=tool.input_schema)
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if cursor is None or not page.tools:
            return all_specs


def _text_of(result: CallToolResult) -> str:
    """Join texts as they are; other content is named, since only text can be answered to a model."""
    parts = [block.text if block.type == "text" else f"[{block.type}, not shown]" for block in result.content]
    if not parts and result.structured_content is not None:
        return msgspec.json.encode(result.structured_content).decode()
    return "\n".join(parts)


def _apply_init_hook(config: McpConfig, environ: Mapping[str, str]) -> McpConfig:
    if not config.init_hook:
        return config
    hook = load_attr(config.init_hook, "init hook")
    changed = guard(lambda: hook(config, environ))
    if isinstance(changed, Failure):
        raise ConfigError(f"The init hook {config.init_hook} failed: {changed.message}")
    if not isinstance(changed, McpConfig):
        raise ConfigError(f"The init hook {config.init_hook} must return the configuration.")
    return changed


def _check_config(config: McpConfig) -> None:
    if bool(config.command) == bool(config.url):
        raise ConfigError(
            "An MCP server needs a command or a url, not both.",
            hint="Set ++tool_overrides.McpTool.command=PROGRAM (and .args=[…]), or .url=ADDRESS.",
        )
    for name, value in config.headers.items():
        if name.lower() in _SECRET_HEADERS and not config.init_hook and not _VARIABLE.search(value):
            raise ConfigError(
                f"The header {name} contains a secret, which must not be written into commands and files.",
                hint=f"Put it into an environment variable: headers.{name}='Bearer ${{MY_TOKEN}}'.",
            )
