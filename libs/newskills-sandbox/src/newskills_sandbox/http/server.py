# SPDX-License-Identifier: Apache-2.0
"""A small HTTP/1.1 server on asyncio (RFC 9112): whole requests in, whole replies out, one after the other.

A client that leaves, also by closing only its sending half, cancels the work on its request. No TLS, no chunked
bodies, no HTTP/2.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import cast

from newskills_sandbox.errors import SandboxError, SettingsError
from newskills_sandbox.http.application import SandboxApplication
from newskills_sandbox.http.hosts import is_loopback, is_own_name
from newskills_sandbox.http.messages import ApiReply, ReceivedRequest

HEAD_BYTES, BODY_BYTES = 64 << 10, 10_000_000
"""What a request may have: 431 and 413 above."""
CONNECTIONS = 4096
"""Open at once: 503 above."""
RECEIVE_SECONDS, IDLE_SECONDS = 60.0, 600.0
"""For a request from its first byte to its last, and until a connection without one is closed."""
LINGER_SECONDS = 2.0
"""Between the last reply and the end, so that a client that still sends does not lose it."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/1\.([01])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00\r\n]*?)[ \t]*")


class _Refused(Exception):
    """A request that is not read further, as a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status, self.sentence = status, sentence


class _Left(Exception):
    """The client has gone."""


class ApiServer:
    """Serves an application at an address; `port` is the real one where 0 was asked for."""

    def __init__(self, application: SandboxApplication, host: str) -> None:
        self.application, self.host, self.port = application, host, 0
        self.connections: set[_Connection] = set()
        self._listener: asyncio.Server | None = None
        self.closing = False
        try:
            self.loopback = is_loopback(host)
        except (OSError, UnicodeError) as error:
            raise SettingsError(f"'{host}' is not an address of this machine ({error}).") from error

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def start(self, port: int) -> None:
        """Listen. Raises SandboxError where that is not possible."""
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(
                lambda: _Connection(self), self.host or None, port, backlog=1024
            )
        except (OSError, OverflowError) as error:
            raise SandboxError(
                f"Cannot listen on port {port} of {self.host or 'all interfaces'}: {error}.",
                hint="Choose another port; 0 = any free port.",
            ) from error
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self, grace: float = 2.0) -> None:
        """Accept nothing more, wait `grace` seconds for the requests in work, then cancel them."""
        self.closing = True
        if self._listener is not None:
            self._listener.close()
        for connection in tuple(self.connections):
            connection.leave_if_idle()
        tasks = {connection.task for connection in self.connections}
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for connection in tuple(self.connections):
            connection.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Connection(asyncio.Protocol):
    """One connection: a task reads a request from the buffer, has it answered, and goes on."""

    task: asyncio.Task[None]

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._changed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._left = False
        self._answering: asyncio.Task[ApiReply] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connections.add(self)
        self.task = asyncio.get_running_loop().create_task(self._serve_requests())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._changed.set()
        if len(self._buffer) > HEAD_BYTES + BODY_BYTES:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._leave_connection()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave_connection()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def leave_if_idle(self) -> None:
        if self._answering is None and not self._buffer:
            self._leave_connection()

    def _leave_connection(self) -> None:
        self._left = True
        self._changed.set()
        self._writable.set()
        if self._answering is not None:
            self._answering.cancel()

    async def _serve_requests(self) -> None:
        try:
            if len(self._server.connections) > CONNECTIONS:
                raise _Refused(503, "The server has too many connections.")
            while await self._serve_request():
                pass
        except _Refused as refused:
            await self._send_reply(self._server.application.refuse(refused.status, refused.sentence), close=True)
            await self._end_output()
        except (_Left, TimeoutError):
            pass
        finally:
            self._server.connections.discard(self)
            self._transport.abort() if self._left else self._transport.close()

    async def _serve_request(self) -> bool:
        """Answer one request; return whether another may follow."""
        await self._wait_until(lambda: bool(self._buffer), IDLE_SECONDS)
        try:
            async with asyncio.timeout(RECEIVE_SECONDS):
                request, keep = await self._receive_request()
        except TimeoutError:
            raise _Refused(408, f"The request was not complete after {RECEIVE_SECONDS:g} s.") from None
        self._answering = asyncio.get_running_loop().create_task(self._answer_request(request))
        try:
            reply = await self._answering
        except asyncio.CancelledError:
            if self._left:
                raise _Left from None
            self._answering.cancel()
            raise
        finally:
            self._answering = None
        keep = keep and not self._server.closing
        await self._send_reply(reply, close=not keep, bodiless=request.method == "HEAD")
        if not keep:
            await self._end_output()
        return keep

    async def _answer_request(self, request: ReceivedRequest) -> ApiReply:
        application = self._server.application
        name = request.headers.get("host", "")
        if self._server.loopback and not is_own_name(name, self._server.host):
            return application.refuse(421, f"This server is not {name}: use localhost, or its address.")
        try:
            return await application.answer(request)
        except Exception as error:  # noqa: BLE001 - one request's failure must not end the server
            return application.refuse(500, f"The server failed on this request: {type(error).__name__}: {error}")

    async def _receive_request(self) -> tuple[ReceivedRequest, bool]:
        """Return a whole request, and whether its client wants to go on afterwards."""
        await self._wait_until(self._has_head)
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        method, target, keep, headers = _parse_head(head)
        size = _body_size(headers)
        if headers.get("expect", "").lower() == "100-continue" and len(rest) < size:
            self._transport.write(CONTINUE)
        end = len(head) + 4 + size
        await self._wait_until(lambda: len(self._buffer) >= end)
        body = bytes(self._buffer[len(head) + 4 : end])
        del self._buffer[:end]
        if not self._transport.is_reading() and not self._left:
            self._transport.resume_reading()
        path = target.partition("?")[0]
        if "://" in path[:8]:  # the absolute form that proxies get
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        return ReceivedRequest(method, path, headers, body), keep

    def _has_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n", 0, HEAD_BYTES + 4)
        if end < 0 and len(self._buffer) > HEAD_BYTES:
            raise _Refused(431, f"The headers of a request may have at most {HEAD_BYTES:,} bytes together.")
        return end >= 0

    async def _wait_until(self, holds: Callable[[], bool], seconds: float | None = None) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                if self._left:
                    raise _Left
                self._changed.clear()
                await self._changed.wait()

    async def _send_reply(self, reply: ApiReply, *, close: bool, bodiless: bool = False) -> None:
        fields = [
            ("Content-Length", str(len(reply.body))),
            *reply.headers,
            *([("Connection", "close")] if close else []),
        ]
        lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}", "Content-Type: application/json"]
        head = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in fields)])
        body = b"" if bodiless else reply.body
        self._transport.write(f"{head}\r\n\r\n".encode("latin-1") + body)
        async with asyncio.timeout(RECEIVE_SECONDS):
            await self._writable.wait()

    async def _end_output(self) -> None:
        """End the output only: closing at once with unread input would reset the connection."""
        with suppress(OSError):
            self._transport.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._left:
                    self._buffer.clear()
                    self._changed.clear()
                    await self._changed.wait()


def _parse_head(head: bytes) -> tuple[str, str, bool, dict[str, str]]:
    """Return method, target, whether the connection is kept, and the header fields. Raises _Refused."""
    first, *lines = head.split(b"\r\n")
    line = _LINE.fullmatch(first)
    fields = [_FIELD.fullmatch(each) for each in lines]
    if line is None or not all(fields):
        raise _Refused(400, "This is not an HTTP/1.1 request.")
    headers: dict[str, str] = {}
    for field in fields:
        assert field is not None
        name, text = field[1].lower().decode("ascii"), field[2].decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    wish = headers.get("connection", "").lower()
    keep = "close" not in wish and (line[3] == b"1" or "keep-alive" in wish)
    return line[1].decode("ascii"), line[2].decode("ascii"), keep, headers


def _body_size(headers: dict[str, str]) -> int:
    """Return how many bytes the body has. Raises _Refused."""
    if "transfer-encoding" in headers:
        raise _Refused(411, "A request must say how long it is (Content-Length).")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise _Refused(400, "This is not an HTTP/1.1 request: its length is no number.")
    if len(text) > 12 or int(text) > BODY_BYTES:
        raise _Refused(413, f"The body of a request may have at most {BODY_BYTES:,} bytes.")
    return int(text)


async def serve(application: SandboxApplication, host: str = "127.0.0.1", port: int = 0) -> ApiServer:
    """Start a server, which listens at once. Raises SettingsError for an address that cannot be, SandboxError for one
    that is taken."""
    server = ApiServer(application, host)
    await server.start(port)
    return server
