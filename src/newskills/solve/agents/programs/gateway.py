# SPDX-License-Identifier: Apache-2.0
"""The run's endpoint as a socket in a folder, which containers without a network see as well."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from newskills.solve.interactive.endpoint import ChatEndpoint

SOCKET = "endpoint.sock"
CHUNK = 1 << 16


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[ChatEndpoint]:
    """Listen on `folder`/SOCKET, and pass what comes to the endpoint that is yielded. Raises ServerStartError,
    OSError."""
    async with ChatEndpoint() as endpoint:
        address = urlsplit(endpoint.url)

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there_reader, there_writer = await asyncio.open_connection(address.hostname, address.port)
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))

        path = folder / SOCKET
        server = await asyncio.start_unix_server(pass_on, path)
        path.chmod(0o666)  # the container's user may be another one
        try:
            yield endpoint
        finally:
            server.close()
            path.unlink(missing_ok=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until either side has gone."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
