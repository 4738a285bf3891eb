# SPDX-License-Identifier: Apache-2.0
"""A served handler, and raw connections to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from newskills.base.http.messages import (
    Handler,
    HttpRequest,
    Response,
    json_response,
)
from newskills.base.http.server import Server, ServerLimits, serve

SHORT = ServerLimits(receive=0.3, idle=0.3, linger=0.2, head=4000, body=100_000)


async def echo(request: HttpRequest) -> Response:
    """What the server understood."""
    return json_response(
        {
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "headers": request.headers,
            "body": request.body.decode("latin-1"),
        }
    )


@contextlib.asynccontextmanager
async def served(handler: Handler = echo, limits: ServerLimits | None = None) -> AsyncIterator[Server]:
    server = await serve(handler, limits=limits)
    try:
        yield server
    finally:
        await server.close(1.0)
        assert not server.connections


class Wire:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self, *, head: bool = False) -> tuple[int, dict[str, str], bytes]:
        raw = await self.reader.readuntil(b"\r\n\r\n")
        line, *rest = raw[:-4].decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in rest)}
        length = 0 if head or line.split(" ")[1] == "100" else int(headers["content-length"])
        return int(line.split(" ")[1]), headers, await self.reader.readexactly(length)

    async def ends(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(), 60) == b""
        except ConnectionError:
            return True


@contextlib.asynccontextmanager
async def wired(server: Server) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def said(data: bytes, limits: ServerLimits | None = None) -> tuple[int, Any, bool]:
    """(status, JSON, whether the connection ended) of the one answer to `data`."""
    async with served(limits=limits) as server, wired(server) as wire:
        wire.writer.write(data)
        status, headers, body = await wire.answer()
        closing = headers.get("connection") == "close"
        assert not closing or await wire.ends()
        return status, msgspec.json.decode(body), closing


def post(body: bytes, *headers: bytes, path: bytes = b"/x") -> bytes:
    lines = [b"POST %b HTTP/1.1" % path, b"Host: h", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
