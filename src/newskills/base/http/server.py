# SPDX-License-Identifier: Apache-2.0
"""A small asyncio HTTP/1.1 server around `httptools` (RFC 9112): whole requests in, whole responses out.

Requests of one connection are answered one after the other, in their order. A client that leaves, also by closing
only its sending half, cancels the work on its request. Answers may be streamed. No TLS, no HTTP/2.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import cast

import httptools
from msgspec import Struct

from newskills.base.aio import await_guarded
from newskills.base.errors import ConfigError, ServerStartError
from newskills.base.http.messages import (
    LAST_CHUNK,
    ChunkedResponse,
    Handler,
    HttpRequest,
    Response,
    encode_chunk,
    encode_head,
    encode_response,
    error_response,
)
from newskills.base.records import Failure

CONTINUE_RESPONSE = b"HTTP/1.1 100 Continue\r\n\r\n"
HEADER_OVERHEAD = 32
"""What a header costs besides its bytes, as in RFC 7541, section 4.1."""


class ServerLimits(Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in seconds.

    head, body   of one request: 431 and 413 above
    ahead        requests of one connection that are read before they are answered
    connections  open at once: 503 above
    receive      from the first byte of a request to its last, and for a client to take an answer: 408 or an end
    idle         until a connection without a request is closed
    linger       between an answer that ends the connection and the end
    """

    head: int = 64 << 10
    body: int = 10_000_000
    ahead: int = 64
    connections: int = 4096
    receive: float = 60.0
    idle: float = 600.0
    linger: float = 2.0


class Server:
    """A listening server; `serve` makes one. `port` is the real one where 0 was asked for."""

    def __init__(self, handler: Handler, limits: ServerLimits, listener: socket.socket) -> None:
        self.handler, self.limits = handler, limits
        self.host, self.port = _listener_address(listener)
        self.closing = False
        self.connections: set[_Connection] = set()
        self._empty = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._interval = min(1.0, limits.receive / 4, limits.idle / 4, limits.linger / 4)
        self._timer: asyncio.TimerHandle | None = None
        self._listener: asyncio.Server | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def start(self, listener: socket.socket) -> None:
        self._listener = await self._loop.create_server(lambda: _Connection(self), sock=listener, backlog=1024)
        self._sweep()

    async def close(self, grace: float = 5.0) -> None:
        """Accept nothing more, wait `grace` seconds for the requests in work, then cancel them."""
        self.closing = True
        if self._listener is not None:
            self._listener.close()
        for connection in tuple(self.connections):
            connection.leave_if_idle()
        if self.connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), grace)
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        for connection in tuple(self.connections):
            connection.abort()
        if self._timer is not None:
            self._timer.cancel()
        # Transports report their end, and so cancel what is left, on the next turn of the loop.
        await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)

    def left(self, connection: _Connection) -> None:
        self.connections.discard(connection)
        if self.closing and not self.connections:
            self._empty.set()

    def _sweep(self) -> None:
        now = self._loop.time()
        for connection in [candidate for candidate in self.connections if candidate.deadline < now]:
            connection.expire()
        self._timer = self._loop.call_later(self._interval, self._sweep)


async def serve(
    handler: Handler, host: str = "127.0.0.1", port: int = 0, *, limits: ServerLimits | None = None
) -> Server:
    """Start a server, which listens at once. An exception of `handler` is answered with 500 and its sentence.

    Raises ConfigError for a host or port that cannot be, ServerStartError for a port that is taken.
    """
    listener = _open_listener(host, port)
    server = Server(handler, limits or ServerLimits(), listener)
    await server.start(listener)
    return server


async def serve_at(handler: Handler, path: Path, *, limits: ServerLimits | None = None) -> Server:
    """Start a server at a unix socket, which every user of this machine who sees the folder may use.

    A socket at `path` that nobody listens to is replaced.

    Raises ServerStartError.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        if path.is_socket() and _is_dead(path):
            path.unlink()
        listener.bind(str(path))
        path.chmod(0o666)  # the user of a container may be another one
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise ServerStartError(f"Cannot listen at {path}: {error.strerror or error}.") from error
    listener.setblocking(False)
    server = Server(handler, limits or ServerLimits(), listener)
    await server.start(listener)
    return server


class _Turn(Struct):
    """A request that waits for its answer, or an `answer` that waits for those before it."""

    request: HttpRequest | None
    answer: Response | None
    last: bool


class _Refused(Exception):
    """Leaves the parser's callbacks with the answer to a request that is not read further."""

    def __init__(self, answer: Response) -> None:
        self.answer = answer


_UPGRADE_FIELDS = frozenset({"connection", "upgrade", "http2-settings"})
"""Headers by which a client offers another protocol."""


class _Connection(asyncio.Protocol):
    """`deadline` is when the server's sweep calls `expire`."""

    def __init__(self, server: Server) -> None:
        self.task: asyncio.Task[None] | None = None
        self.deadline = inf
        self._server, self._limits = server, server.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._turns: deque[_Turn] = deque()
        self._ahead = 0
        self._receiving = self._headed = self._deaf = self._owes_continue = False
        self._declined_upgrade = False
        self._writable: asyncio.Future[None] | None = None
        self._target = b""
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._silent = 0  # bytes since the parser found anything: it keeps the start of an endless header or chunk
        self._body = bytearray()

    # From the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only
        self._server.connections.add(self)
        self._rest()
        if len(self._server.connections) > self._limits.connections or self._server.closing:
            self._refuse(error_response(503, "The server has too many connections."))

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._silent += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _Refused):
                raise
            self._refuse(error.__context__.answer)
        except httptools.HttpParserUpgrade as offer:
            if self._declined_upgrade:
                self._read_on(data[offer.args[0] :])
            else:
                self._deaf = True
        except httptools.HttpParserError as error:
            if not self._deaf:
                self._refuse(error_response(400, f"This is not an HTTP/1.1 request ({error})."))
        if self._silent > self._limits.head and not self._deaf:
            self._refuse(self._head_too_large())

    def connection_lost(self, exc: Exception | None) -> None:
        self._deaf = True
        self._server.left(self)
        if self.task is not None:
            self.task.cancel()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()
        self._expire_in(self._limits.receive)

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
        self._rest()

    # From the parser

    def on_message_begin(self) -> None:
        self._receiving, self._headed = True, False
        self._target, self._headers, self._body, self._head_size, self._silent = b"", {}, bytearray(), 0, 0
        if self.task is None:
            self._expire_in(self._limits.receive)

    def on_url(self, part: bytes) -> None:
        self._silent = 0
        self._target += part
        if len(self._target) > self._limits.head:
            raise _Refused(error_response(414, "The address of the request is too long."))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._silent = 0
        self._head_size += len(name) + len(value) + HEADER_OVERHEAD
        if self._head_size > self._limits.head:
            raise _Refused(self._head_too_large())
        if self._headed:  # a trailer
            return
        key, text = name.lower().decode("latin-1"), value.decode("latin-1")
        before = self._headers.get(key)
        self._headers[key] = text if before is None else f"{before}, {text}"

    def on_headers_complete(self) -> None:
        self._headed = True
        if int(self._headers.get("content-length", "0")) > self._limits.body:
            raise _Refused(self._body_too_large())
        if self._headers.get("expect", "").lower() == "100-continue":
            self._owes_continue = True
            if self.task is None:
                self._offer_to_read()

    def on_body(self, part: bytes) -> None:
        self._silent = 0
        self._body += part
        if len(self._body) > self._limits.body:
            raise _Refused(self._body_too_large())

    def on_message_complete(self) -> None:
        self._declined_upgrade = self._parser.should_upgrade() and (
            self._headers.get("content-length", "0") != "0" or "transfer-encoding" in self._headers
        )
        if self._declined_upgrade:
            return
        self._receiving = self._owes_continue = False
        self._deaf = not self._parser.should_keep_alive() or self._parser.should_upgrade()
        path, _, query = self._target.decode("latin-1").partition("?")
        if "://" in path[:8]:  # the absolute form that proxies get
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        method = self._parser.get_method().decode("latin-1")
        self._add(_Turn(HttpRequest(method, path, query, self._headers, bytes(self._body)), None, self._deaf))

    def _read_on(self, rest: bytes) -> None:
        """Parse a request with a body as if it had not offered another protocol, which a server may ignore (RFC 9110,
        section 7.8). The parser stops before the body where one is offered."""
        fields = {name: text for name, text in self._headers.items() if name not in _UPGRADE_FIELDS}
        if "close" in self._headers.get("connection", "").lower():
            fields["connection"] = "close"
        lines = [f"{name}: {text}\r\n" for name, text in fields.items()]
        method = self._parser.get_method()
        head = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self._target, "".join(lines).encode("latin-1"))
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(head + rest)

    # From the server

    def expire(self) -> None:
        if self._receiving and self.task is None:
            self._refuse(error_response(408, f"The request was not complete after {self._limits.receive:g} s."))
        else:
            self.abort()

    def leave_if_idle(self) -> None:
        if self.task is None:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    # Own work

    def _add(self, turn: _Turn) -> None:
        self._turns.append(turn)
        if turn.request:
            self._ahead += len(turn.request.body)
        if len(self._turns) >= self._limits.ahead or self._ahead > self._limits.body:
            self._transport.pause_reading()
        if self.task is None:
            self.deadline = inf
            self.task = self._loop.create_task(self._answer_all())

    async def _answer_all(self) -> None:
        try:
            while self._turns:
                turn = self._turns.popleft()
                last = await self._answer(turn)
                if last:
                    self._linger()
                if self._writable is not None:
                    await self._writable
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self.task = None
        self._ahead = 0
        if not self._transport.is_reading():
            self._transport.resume_reading()
        if self._owes_continue:
            self._offer_to_read()
        self._rest()

    async def _answer(self, turn: _Turn) -> bool:
        """Send the answer; return whether it was the last of the connection."""
        answer: Response | ChunkedResponse | None = turn.answer
        if turn.request is not None:
            response = await await_guarded(self._server.handler(turn.request))
            if isinstance(response, Failure):
                response = error_response(500, f"The server failed on this request: {response.message}")
            answer = response
        assert answer is not None
        last = turn.last or (self._server.closing and not self._turns)
        if isinstance(answer, ChunkedResponse):
            return await self._stream(answer, last)
        bodiless = turn.request is not None and turn.request.method == "HEAD"
        self._transport.write(encode_response(answer, close=last, bodiless=bodiless))
        return last

    async def _stream(self, answer: ChunkedResponse, last: bool) -> bool:
        """Send chunks as they come; one that fails ends the connection, by which the client knows that more was due."""
        self._transport.write(encode_head(answer, close=last))
        try:
            async for chunk in answer.chunks:
                if chunk:
                    self._transport.write(encode_chunk(chunk))
                if self._writable is not None:
                    await self._writable
        except Exception:  # noqa: BLE001 - headers are sent, so an end without the last chunk is all that can be said
            self.abort()
            return True
        finally:
            await answer.chunks.aclose()
        self._transport.write(LAST_CHUNK)
        return last

    def _refuse(self, answer: Response) -> None:
        """Refuse the request, the last that is read; the answers to earlier ones come first."""
        self._deaf, self._receiving, self._owes_continue = True, False, False
        self._add(_Turn(None, answer, last=True))

    def _linger(self) -> None:
        """End the output only: closing at once with unread input would reset the connection, and the client might lose
        the answer."""
        self._deaf = True
        self._turns.clear()
        with suppress(OSError):  # the client has just gone
            self._transport.write_eof()

    def _offer_to_read(self) -> None:
        self._owes_continue = False
        self._transport.write(CONTINUE_RESPONSE)

    def _rest(self) -> None:
        if self._writable is None:
            if self.task is not None:
                self.deadline = inf
            else:
                self.deadline = self._loop.time() + self._patience()

    def _patience(self) -> float:
        if self._deaf:
            return self._limits.linger
        if self._receiving:
            return self._limits.receive
        return self._limits.idle

    def _expire_in(self, seconds: float) -> None:
        self.deadline = self._loop.time() + seconds

    def _head_too_large(self) -> Response:
        return error_response(
            431, f"The headers of a request may have at most {self._limits.head:,} bytes together."
        )

    def _body_too_large(self) -> Response:
        return error_response(413, f"The body of a request may have at most {self._limits.body:,} bytes.")


def _open_listener(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise ConfigError(f"{port} is not a port; expected a number from 0 to 65535.", hint="0 = any free port.")
    try:
        addresses = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)  # noqa: S104 - "" = all
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigError(f"'{host}' is not an address of this machine ({error}).") from error
    family, kind, protocol, _, address = min(addresses, key=lambda address_info: address_info[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise ServerStartError(
            _bind_failure(host, port, error), hint="Choose another port; 0 = any free port."
        ) from error
    listener.setblocking(False)
    return listener


def _listener_address(listener: socket.socket) -> tuple[str, int]:
    """Return host and port; of a unix socket its path and 0."""
    name = listener.getsockname()
    if isinstance(name, str):
        return name, 0
    host, port, *_ = name
    return host, port


def _is_dead(path: Path) -> bool:
    """Return whether nobody listens at a unix socket, whose process has been killed."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False


def _bind_failure(host: str, port: int, error: OSError) -> str:
    why = {
        errno.EADDRINUSE: "another program listens there",
        errno.EACCES: "this user may not listen there",
        errno.EADDRNOTAVAIL: "that is not an address of this machine",
    }.get(error.errno or 0, error.strerror or str(error))
    return f"Cannot listen on port {port} of {host or 'all interfaces'}: {why}."
