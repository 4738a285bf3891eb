# SPDX-License-Identifier: Apache-2.0
"""One connection to an MCP server, kept by a task of its own: the SDK wants it entered and left in the same one."""

from __future__ import annotations

import asyncio
import importlib
import logging
import tempfile
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from newskills.base.aio import await_guarded
from newskills.base.errors import ConfigError, FatalToolError
from newskills.base.records import Failure

if TYPE_CHECKING:
    from mcp import Client, MCPError

INSTALL = "pip install 'newskills[tools]'"
LAST_WORDS = 800
CLOSE_TIMEOUT = 10.0
"""Seconds to say goodbye; the SDK kills a stdio server that does not end within 4."""
_LOST = ("connection closed", "session terminated", "sse stream")
"""How the SDK's own messages begin; its codes are used by servers for anything."""


def import_mcp() -> Any:
    """Import the module `mcp`. Raises ConfigError with what to install."""
    try:
        library = importlib.import_module("mcp")
    except ImportError as error:
        raise ConfigError("MCP servers need the package mcp, which is not installed.", hint=INSTALL) from error
    if not hasattr(library, "Client"):
        raise ConfigError("The installed package mcp is too old: version 2 is needed.", hint=INSTALL)
    logger = logging.getLogger("mcp")
    if not logger.handlers:  # else warnings of the library go to the terminal, across the progress display
        logger.addHandler(logging.NullHandler())
    return library


def is_lost(error: MCPError) -> bool:
    """Return whether the connection, or the session on the server, is gone."""
    return error.message.lower().startswith(_LOST)


class ServerLog:
    """What a stdio server writes to its standard error; deleted with the object."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed by Link

    def last_words(self) -> str:
        end = self.file.seek(0, 2)
        self.file.seek(max(0, end - LAST_WORDS))
        return self.file.read().strip()


class McpLink:
    """A connected client. `secrets` are masked in whatever is said about it."""

    def __init__(
        self, client: AbstractAsyncContextManager[Client], log: ServerLog, secrets: Sequence[str]
    ) -> None:
        self._context, self._log, self._secrets = client, log, [secret for secret in secrets if secret]
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(await_guarded(self._keep()))

    @property
    def client(self) -> Client:
        return self._ready.result()

    @property
    def has_ended(self) -> bool:
        """Whether the connection broke by itself."""
        return self._task.done()

    async def open(self, timeout: float) -> None:
        """Wait until the server has answered. Raises FatalToolError with the server's last words."""
        either: list[asyncio.Future[Any]] = [self._task, self._ready]
        await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done():
            return
        failure = self._task.result() if self._task.done() else None
        if isinstance(failure, Failure):
            why = failure.message
        else:
            why = f"no answer within {timeout:g} seconds"
        words = self._log.last_words()
        raise FatalToolError(self.mask_secrets(f"{why}{'. It said: ' if words else ''}{words}"))

    async def close(self) -> None:
        """End the connection, and a stdio server with all its processes. Idempotent."""
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()
        _, waiting = await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT)
        if waiting:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._log.file.close()

    def mask_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    async def _keep(self) -> None:
        try:
            async with self._context as client:
                self._ready.set_result(client)
                await self._stop.wait()
        except BaseExceptionGroup as group:
            raise _first_error(group) from group


def _first_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
