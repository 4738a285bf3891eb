# SPDX-License-Identifier: Apache-2.0
"""A served sandbox from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
from collections.abc import Callable, Mapping

from newskills_sandbox.http.application import SandboxApplication
from newskills_sandbox.http.server import serve
from newskills_sandbox.sessions import AsyncSandbox
from newskills_sandbox.settings import SandboxSettings

OPEN_FILES = 65536
INSTALL = "pip install 'newskills-sandbox[science]' installs them."


async def serve_until_stopped(
    settings: SandboxSettings,
    host: str,
    port: int,
    token: str,
    environ: Mapping[str, str],
    *,
    say: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM, after which every session has ended. `say` hears of the address, and of what is
    missing.

    Raises SettingsError, SandboxError where the code cannot be isolated or the port is taken.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    allow_open_files(OPEN_FILES)  # each session and each client is a descriptor
    sandbox = AsyncSandbox(settings, environ)
    application = SandboxApplication(sandbox, token=token)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(sandbox.close)
        await sandbox.start()
        stack.push_async_callback(application.close)
        server = await serve(application, host, port)
        stack.push_async_callback(server.close)
        say(f"Sandbox at {server.url} (isolation level {sandbox.isolation_level}); Ctrl-C stops it.")
        if sandbox.missing:
            say(f"The sandbox finds no {' and no '.join(sandbox.missing)} on this machine. {INSTALL}")
        await stopped.wait()


def allow_open_files(wanted: int) -> None:
    """Raise the soft limit of open files to `wanted`, or as far as the hard one allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
