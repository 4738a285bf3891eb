# SPDX-License-Identifier: Apache-2.0
"""Raw servers on loopback for tests of the wire: what they send is given byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 60))


class Heard:
    """One request as it arrived."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.line, *lines = head.decode("latin-1").split("\r\n")
        self.headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
        self.body = body

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Loopback:
    """A server of which a `Play` plays each connection; `heard` holds what `hear` read."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.heard: list[Heard] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def hear(self, reader: asyncio.StreamReader) -> Heard | None:
        """The next request of a connection, or None at its end."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        request = Heard(head[:-4], b"")
        request.body = await reader.readexactly(int(request.headers.get("content-length", "0")))
        self.heard.append(request)
        return request


Play = Callable[[Loopback, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def loopback(
    play: Play,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Loopback]:
    place = Loopback()
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        place.connections += 1
        try:
            await play(place, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            with contextlib.suppress(Exception):
                writer.close()
                await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1024, limit=1 << 22, ssl=tls)
    place.port = server.sockets[0].getsockname()[1]
    try:
        yield place
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


def response(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def always(*answers: bytes) -> Play:
    """Plays `answers` in turn over all connections; the last one for ever."""
    turn = 0

    async def play(place: Loopback, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal turn
        while await place.hear(reader) is not None:
            writer.write(answers[min(turn, len(answers) - 1)])
            turn += 1
            await writer.drain()

    return play


def replies(*values: Any) -> Play:
    """As `always`, each value sent as JSON with status 200."""
    return always(*(response(msgspec.json.encode(value)) for value in values))


def events(*values: Any, done: bool = True) -> bytes:
    """A chunked server-sent event stream."""
    lines = [b"data: " + (v if isinstance(v, bytes) else msgspec.json.encode(v)) + b"\n\n" for v in values]
    if done:
        lines.append(b"data: [DONE]\n\n")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(line), line) for line in lines)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + chunks + b"0\r\n\r\n"
