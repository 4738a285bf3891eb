# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 by hand, because the point is to be able to break it (RFC 9112; no framework lets go mid-body)."""

from __future__ import annotations

import asyncio
import email.utils
import socket
import struct
import time
from collections.abc import Iterable
from http.client import responses

from msgspec import Struct

MAX_HEAD = 1 << 16


class HttpRequest(Struct):
    """Header names are lower case; `body` is decoded from chunks."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def keep_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """The next request of a connection; None when the client has closed it."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    line, *fields = head[:-4].split("\r\n")
    method, path, _version = line.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
    try:
        return HttpRequest(method, path, headers, await _read_body(reader, headers))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readline()
    return b"".join(parts)


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Status line and header fields, with the empty line that ends them."""
    lines = [
        f"HTTP/1.1 {status} {responses.get(status, 'Unknown')}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def retry_after(seconds: float, *, as_date: bool) -> str:
    """Both forms of the header's value (RFC 9110, 10.2.3)."""
    if as_date:
        return email.utils.formatdate(time.time() + seconds, usegmt=True)
    return f"{seconds:g}"


def chunked(parts: Iterable[bytes]) -> list[bytes]:
    """The body in chunked transfer coding, one chunk for each part and the empty one that ends it."""
    return [*(b"%x\r\n%s\r\n" % (len(part), part) for part in parts), b"0\r\n\r\n"]


async def send(writer: asyncio.StreamWriter, pieces: Iterable[bytes], *, pause: float | None = None) -> None:
    """Writes the pieces one by one; with `pause`, that many seconds apart."""
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        if pause is not None:
            await asyncio.sleep(pause)


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends the connection with RST: linger 0 drops what is unsent."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
