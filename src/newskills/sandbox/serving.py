# SPDX-License-Identifier: Apache-2.0
"""A served sandbox from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

from newskills.base.limits import allow_open_files
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox
from newskills.sandbox.server import SandboxServer
from newskills_sandbox.variables import TOKEN_VARIABLE

OPEN_FILES = 65536
GRACE = 2.0
INSTALL = "pip install 'newskills[sandbox]' installs them."


async def serve_until_stopped(
    config: SandboxConfig, host: str, port: int, environ: Mapping[str, str], *, say: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM, after which every session has ended. `say` hears of the address, and of what is
    missing.

    Raises ConfigError, SandboxError where the code cannot be isolated, ServerStartError for a port that is taken.
    """
    work = asyncio.create_task(_serve_forever(config, host, port, environ, say))

    def stop() -> None:
        if not work.cancelling():
            work.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    with contextlib.suppress(asyncio.CancelledError):
        await work


class ServedSandbox(NamedTuple):
    """A sandbox that answers at `url`; `missing`: modules to preload that are not installed."""

    url: str
    isolation_level: str
    run_id: str
    missing: tuple[str, ...]


@contextlib.asynccontextmanager
async def serve_sandbox(
    config: SandboxConfig, host: str, port: int, environ: Mapping[str, str]
) -> AsyncIterator[ServedSandbox]:
    """Serve inside the `async with`. Raises as `serve_until_stopped`."""
    allow_open_files(OPEN_FILES)  # each session and each client is a descriptor
    sandbox = LocalSandbox(config, environ)
    app = SandboxServer(sandbox, token=environ.get(TOKEN_VARIABLE, ""))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(sandbox.close)
        await sandbox.start()
        stack.push_async_callback(app.close)
        server = await app.serve(host, port)
        stack.push_async_callback(server.close, GRACE)
        yield ServedSandbox(server.url, sandbox.isolation_level, app.run_id, tuple(sandbox.missing))


async def _serve_forever(
    config: SandboxConfig, host: str, port: int, environ: Mapping[str, str], say: Callable[[str], None]
) -> None:
    async with serve_sandbox(config, host, port, environ) as running:
        say(
            f"Sandbox at {running.url} (isolation level {running.isolation_level}, run {running.run_id}); "
            "Ctrl-C stops it."
        )
        if running.missing:
            say(f"The sandbox finds no {' and no '.join(running.missing)} on this machine. {INSTALL}")
        await asyncio.get_running_loop().create_future()
