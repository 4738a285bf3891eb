# SPDX-License-Identifier: Apache-2.0
"""One HTTP/1.1 connection: a request out in one write, a response in (RFC 9112).

The usual response, a 200 with Content-Length on a connection that stays open, is cut out of the bytes here; all others
go through `httptools`. The pool in `client.py` owns connections; nothing else should build one.
"""

from __future__ import annotations

import asyncio
import select
import time
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import httptools

from newskills.base.errors import HttpError, RequestTimeoutError, TransportError

Headers = list[tuple[bytes, bytes]]
EventWatch = Callable[[float, bytes], None]
"""Gets `time.perf_counter()` when the last byte of a server-sent event came, and the event's data."""
EVENT_WATCH: ContextVar[EventWatch | None] = ContextVar("event watch", default=None)
"""What the streams that a task reads tell of their events."""

HEAD_ALLOWANCE = 1 << 20
"""Bytes that status line, headers and chunk framing may add to a body."""
STREAM_BUFFER = 1 << 20
"""Unread bytes of a streamed body at which reading pauses."""
USUAL, LENGTH, GZIP = b"HTTP/1.1 200 ", b"\r\ncontent-length:", b"\x1f\x8b"
WATCHED_BATCH = 1 << 13
"""Unread bytes of a watched stream at which its reader is woken."""
TLS_ALERT = b"\x15\x03"
MAX_LENGTH_DIGITS = 12
"""Of a length that is read here."""
REPEAT_WAIT_SECONDS, REPEAT_WAIT_FACTOR, FEW_REPLIES = 0.2, 2.0, 10
"""A suspected reply is held that long after its request was sent, and as many times the longest reply; longer where
fewer replies show how long one takes. By then the true one should be there."""


class StaleConnectionError(TransportError):
    """A kept-alive connection that the server closed before it answered anything: safe to try afresh."""


class RepeatGuard:
    """What the connections to one server know of repeated replies.

    A server or proxy that sends a reply twice would answer each later request with the reply to the one before. A
    reply that equals the last one of its connection to the byte is therefore held for a moment: where another comes,
    that one is the answer. Where none comes, this server gives equal replies, and none of them is held any more.
    """

    def __init__(self) -> None:
        self.suspects = True
        self._replies = 0
        self._longest_reply = 0.0

    def record(self, seconds: float) -> None:
        """Take note of a reply that came `seconds` after its request."""
        self._replies += 1
        self._longest_reply = max(self._longest_reply, seconds)

    def hold_seconds(self) -> float:
        """Return how long after a request a suspected reply to it is held."""
        few = max(1.0, FEW_REPLIES / max(1, self._replies))
        return REPEAT_WAIT_SECONDS + REPEAT_WAIT_FACTOR * few * self._longest_reply


class HttpResponse:
    """Status, headers as received (or the head that holds them), and the whole body."""

    __slots__ = ("_headers", "body", "status")

    def __init__(self, status: int, headers: Headers | bytes, body: bytes) -> None:
        self.status, self._headers, self.body = status, headers, body

    @property
    def headers(self) -> Headers:
        """Taken apart when they are first asked for: few ask."""
        if isinstance(self._headers, bytes):
            self._headers = _headers_in(self._headers)
        return self._headers

    def header(self, name: str) -> str | None:
        """Return the first value of header `name` (any case)."""
        return find_header(self.headers, name)


class StreamedResponse:
    """A response whose body is read while it arrives; reading pauses while `STREAM_BUFFER` bytes wait.

    `watch` is told when events came, which are then read in batches: reading some should not delay others.
    """

    def __init__(self, connection: Connection, status: int, headers: Headers) -> None:
        self.status, self.headers = status, headers
        self.complete = False
        self.watch: EventWatch | None = None
        self._connection = connection
        self._chunks: deque[tuple[float, bytes]] = deque()
        self._arrived = 0.0
        self._waiting = 0
        self._error: HttpError | None = None
        self._wake: asyncio.Future[None] | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield pieces of the body. Raises TransportError, RequestTimeoutError."""
        while True:
            while self._chunks:
                self._arrived, chunk = self._chunks.popleft()
                self._waiting -= len(chunk)
                if not self._chunks:
                    self._connection.resume()
                yield chunk
            if self._error is not None:
                raise self._error
            if self.complete:
                return
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    async def read(self) -> bytes:
        """Return the rest of the body."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the data of each server-sent event (WHATWG HTML, section 9.2); other fields, comments and events
        without data, which keep a connection alive, are skipped."""
        data: list[bytes] = []
        async for line in self._lines():
            if line.startswith(b"data:"):
                content = line[6:] if line[5:6] == b" " else line[5:]
                data.append(content)
            elif not line and data:
                if event := b"\n".join(data).strip():
                    yield self._report_event(event)
                data.clear()
        if event := b"\n".join(data).strip():
            yield self._report_event(event)

    async def _lines(self) -> AsyncIterator[bytes]:
        rest: list[bytes] = []
        async for chunk in self.chunks():
            first, *others = chunk.split(b"\n")
            rest.append(first)
            if others:
                yield b"".join(rest).removesuffix(b"\r")
                for line in others[:-1]:
                    yield line.removesuffix(b"\r")
                rest = [others[-1]]
        if last := b"".join(rest):
            yield last.removesuffix(b"\r")

    def feed(self, chunk: bytes) -> None:
        self._chunks.append((time.perf_counter(), chunk))
        self._waiting += len(chunk)
        if self._waiting > STREAM_BUFFER:
            self._connection.pause()
        if self.watch is None or self._waiting > WATCHED_BATCH:
            self._notify()

    def finish(self, error: HttpError | None = None) -> None:
        self.complete, self._error = error is None, error
        self._notify()

    def _report_event(self, event: bytes) -> bytes:
        if self.watch is not None:
            self.watch(self._arrived, event)
        return event

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Connection(asyncio.Protocol):
    """At most one request at a time. `on_lost` hears of the end of the connection, whatever its cause."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        where: str,
        max_body: int,
        on_lost: Callable[[Connection], None],
        repeats: RepeatGuard,
    ) -> None:
        self.closed = False
        self._repeats = repeats
        self._held: HttpResponse | None = None
        self._last_body = b""
        self._sent_at = 0.0
        self._loop, self._where, self._max_body, self._on_lost = loop, where, max_body, on_lost
        self._transport: Any = None
        self._poller = select.poll()
        self._served = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timeout = self._deadline = self._fires = 0.0
        self._reply: asyncio.Future[HttpResponse] | None = None
        self._head: asyncio.Future[StreamedResponse] | None = None
        self._stream: StreamedResponse | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._received = 0
        self._headers: Headers = []
        self._chunks: list[bytes] = []
        self._headed = False
        self._usual_head, self._missing = b"", 0

    def send(self, data: bytes, timeout: float) -> asyncio.Future[HttpResponse]:
        """Write a whole request; the future ends with the response or a HttpError within `timeout` seconds."""
        self._reply = reply = self._loop.create_future()
        self._start(data, timeout)
        return reply

    def send_streaming(self, data: bytes, timeout: float) -> asyncio.Future[StreamedResponse]:
        """Send as `send` does, but the future ends with the headers; `timeout` still covers the whole body."""
        self._head = head = self._loop.create_future()
        self._start(data, timeout)
        return head

    def abort(self) -> None:
        """Close at once, without a word to the server."""
        self.closed = True
        self._disarm()
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        with suppress(RuntimeError):
            self._transport.pause_reading()

    def resume(self) -> None:
        with suppress(RuntimeError):
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if (sock := transport.get_extra_info("socket")) is not None:
            self._poller.register(sock.fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        begins = not self._received
        self._received += len(data)
        if self._missing:
            self._take(data)
            return
        if begins and self._reply is not None and (frame := usual_frame(data, self._max_body)) is not None:
            at, self._missing = frame
            self._usual_head = data[:at]
            self._take(data[at:])
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._break(TransportError(f"{self._where} asks for another protocol than HTTP/1.1."))
        except httptools.HttpParserError as error:
            if data.startswith(TLS_ALERT):
                self._break(TransportError(f"{self._where} speaks TLS: use https:// in its address."))
            self._break(TransportError(f"{self._where} did not send an HTTP/1.1 response ({error})."))
        if self._received > self._max_body + HEAD_ALLOWANCE:
            self._break(
                TransportError(f"The reply of {self._where} is larger than the limit of {self._max_body:,} bytes.")
            )

    def _take(self, data: bytes) -> None:
        """Take a part of the body of a usual response. What comes behind its end spoils the connection, unless this is
        the reply to the last request once more: then it is the true one."""
        rest = data[self._missing :]
        self._chunks.append(data[: self._missing])
        self._missing = max(0, self._missing - len(data))
        if self._missing:
            return
        if rest and not self._is_repeated(b"".join(self._chunks)):
            self.abort()
        self._complete(200, self._usual_head)
        if rest and self._held is not None:
            self.data_received(rest)

    def _is_repeated(self, body: bytes) -> bool:
        """Return whether a reply is to be held, since it equals the one to the last request."""
        return self._held is None and self._repeats.suspects and body != b"" and body == self._last_body

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._disarm()
        if self._busy():
            self._lost_while_busy(exc)
        self._on_lost(self)

    def on_message_begin(self) -> None:
        if not self._busy():
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._headed = True
        if self._head is not None and not self._head.done() and (status := self._parser.get_status_code()) >= 200:
            self._stream = StreamedResponse(self, status, self._headers)
            self._head.set_result(self._stream)

    def on_body(self, chunk: bytes) -> None:
        if self._stream is not None:
            self._received -= len(chunk)
            self._stream.feed(chunk)
        else:
            self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self._headers, self._headed = [], False
            return
        if not self._parser.should_keep_alive():
            self.closed = True
            self._transport.close()
        self._complete(status, self._headers)

    def _start(self, data: bytes, timeout: float) -> None:
        self._expect_reply()
        if self._served and self._poller.poll(0):
            # Nothing is awaited: a second reply to the last request would be taken for the reply to this one.
            self._break(
                StaleConnectionError(f"{self._where} closed a kept-alive connection, or sent on it unasked.")
            )
            return
        self._sent_at = self._loop.time()
        self._timeout, self._deadline = timeout, self._sent_at + timeout
        if self._timer is None or self._fires > self._deadline:
            self._disarm()
            self._arm()
        self._transport.write(data)

    def _expect_reply(self) -> None:
        self._received, self._missing, self._headed = 0, 0, False
        self._headers, self._chunks, self._stream = [], [], None

    def _arm(self) -> None:
        """Start the timer, which serves many requests: most end long before it, and it then waits on for the
        next."""
        self._fires = self._deadline
        self._timer = self._loop.call_later(self._deadline - self._loop.time(), self._look)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if not self._busy():
            return
        if self._loop.time() < self._deadline:
            self._arm()
        else:
            self._break(RequestTimeoutError(f"{self._where} sent no complete reply within {self._timeout:g} s."))

    def _busy(self) -> bool:
        return self._reply is not None or self._head is not None

    def _complete(self, status: int, headers: Headers | bytes) -> None:
        if not self._busy():
            return
        self._served += 1
        if self._stream is not None:
            self._reply = self._head = None
            self._stream.finish()
            return
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        response = HttpResponse(status, headers, body)
        if self._held is not None:
            self.abort()  # the reply that was held had been sent twice, and so may this one be
        elif self._is_repeated(body) and not self.closed:
            self._held = response
            self._expect_reply()
            until = min(self._sent_at + self._repeats.hold_seconds(), self._deadline)
            self._loop.call_at(until, self._believe, response)
            return
        self._last_body = body
        self._repeats.record(self._loop.time() - self._sent_at)
        self._answer(response)

    def _believe(self, held: HttpResponse) -> None:
        """Take a held reply as the answer: none came behind it."""
        if self._held is held and not self._received and self._poller.poll(0):  # the loop was late, not the reply
            self._loop.call_later(REPEAT_WAIT_SECONDS, self._believe, held)
        elif self._held is held and not self._received:
            self._repeats.suspects = False
            self._answer(held)

    def _answer(self, response: HttpResponse) -> None:
        reply = self._reply
        self._reply = self._head = self._held = None
        if reply is None or reply.done():
            return
        try:
            if response.body[:2] == GZIP and response.header("content-encoding") is not None:
                response.body = gunzip(response.body, self._max_body, self._where)
            reply.set_result(response)
        except TransportError as error:
            reply.set_exception(error)

    def _lost_while_busy(self, exc: Exception | None) -> None:
        framed = find_header(self._headers, "content-length") or find_header(self._headers, "transfer-encoding")
        if exc is None and self._headed and not framed:
            self._complete(self._parser.get_status_code(), self._headers)
            return
        why = f": {exc}" if exc else ""
        if self._received or self._stream is not None:
            self._break(TransportError(f"{self._where} broke off in the middle of its reply{why}."))
        elif self._served:  # what is held may be no answer to this request
            self._break(StaleConnectionError(f"{self._where} closed a kept-alive connection{why}."))
        else:
            tls = ""
            if self._where.startswith("http://"):
                tls = " Does it expect TLS (https://)?"
            self._break(TransportError(f"{self._where} closed the connection without a reply{why}.{tls}"))

    def _break(self, error: HttpError) -> None:
        self.abort()
        pending = (self._reply, self._head)
        self._reply = self._head = self._held = None
        for future in pending:
            if future is not None and not future.done():
                future.set_exception(error)
        if self._stream is not None and not self._stream.complete:
            self._stream.finish(error)


def usual_frame(data: bytes, most: int) -> tuple[int, int] | None:
    """Return (where the body begins, its length), if `data` begins with the whole head of a usual response: a 200
    with a body of up to `most` bytes, framed by nothing but Content-Length, on a connection that stays open."""
    end = data.find(b"\r\n\r\n")
    if end < 0 or not data.startswith(USUAL):
        return None
    head = data[: end + 2].lower()
    rest = head.partition(LENGTH)[2]
    length = rest[: rest.find(b"\r")].strip(b" \t")
    # A second length is in the way, whatever else frames a message or ends a connection, and a name with blanks behind.
    if not length.isdigit() or len(length) > MAX_LENGTH_DIGITS or LENGTH in rest or b"transfer-encoding" in head:
        return None
    if (
        b" :" in head
        or b"\t:" in head
        or head.count(b"connection:") != head.count(b"\r\nconnection: keep-alive\r\n")
    ):
        return None
    if 0 < int(length) <= most:
        return (end + 4, int(length))
    return None


def _headers_in(head: bytes) -> Headers:
    """Parse the headers of a head with its status line."""
    pairs = (line.partition(b":") for line in head.split(b"\r\n")[1:] if line)
    return [(name, value.strip(b" \t")) for name, _, value in pairs]


def find_header(headers: Headers, name: str) -> str | None:
    """Return the first value of header `name` (any case)."""
    wanted = name.lower().encode()
    for key, value in headers:
        if key.lower() == wanted:
            return value.decode("latin-1").strip()
    return None


def gunzip(body: bytes, limit: int, where: str) -> bytes:
    """Decompress a body that came compressed without being asked for. Raises TransportError when broken or over
    `limit`."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(body, limit)
    except zlib.error as error:
        raise TransportError(f"{where} sent a broken gzip body ({error}).") from error
    if not inflater.eof:
        raise TransportError(f"The gzip body of {where} is truncated or larger than {limit:,} bytes.")
    return plain
