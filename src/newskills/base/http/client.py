# SPDX-License-Identifier: Apache-2.0
"""The hot path: a small asyncio HTTP/1.1 client with a keep-alive pool sized to the concurrency.

No redirects (a key must not travel), no cookies, no retries but one: a kept-alive connection that the server
closed before answering a single byte is replaced and the request sent again (RFC 9112, section 9.3.1).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from typing import cast
from urllib.parse import urlsplit

from newskills.base.errors import ConfigError, ConnectError, RedirectError, TransportError
from newskills.base.http.connection import (
    EVENT_WATCH,
    Connection,
    Headers,
    HttpResponse,
    RepeatGuard,
    StaleConnectionError,
    StreamedResponse,
    find_header,
)
from newskills.base.http.proxy import Proxy
from newskills_sandbox.waiters import Waiters

HeaderList = tuple[tuple[str, str], ...]

MAX_BODY = 256 << 20
JSON_TYPE = b"application/json"
CONNECT_TIMEOUT = 30.0
CONNECTS_AT_ONCE = 64
"""More would overflow the listen queue of common servers (100), which costs a second each."""
KEEPALIVE_PROBES = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 5))
"""A server that vanished without a FIN is noticed in 210 s, however long the request's own timeout is."""


class HttpClient:
    """Requests to one base URL, at most `limit` at once; further ones wait their turn in order.

    Belongs to the event loop of its first request. `proxy` as found by `proxy.proxy_for`; `tls` replaces the
    system's certificate store; `connect_to` is where to connect instead of the URL's host (a tunnel).
    Errors: TransportError, RequestTimeoutError, RedirectError. They know nothing of what the server serves: who does,
    says so, with the `message` of what it caught.
    """

    def __init__(
        self,
        base_url: str,
        *,
        limit: int = 512,
        headers: HeaderList = (),
        connect_timeout: float = CONNECT_TIMEOUT,
        proxy: Proxy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.max_body = MAX_BODY
        self.connect_to: tuple[str, int] | None = None
        self._scheme, self._host, self._port, self._prefix = split_url(self.base_url)
        self._where = f"{self._scheme}://{_url_authority(self._host, self._port)}"
        self._limit, self._headers, self._connect_timeout = limit, headers, connect_timeout
        self._proxy, self._tls = proxy, tls
        self._heads: dict[tuple[str, str, HeaderList], bytes] = {}
        self._idle: list[Connection] = []
        self._live: set[Connection] = set()
        self._repeats = RepeatGuard()
        self._slots = 0
        self._waiters: Waiters[Connection | None] = Waiters(self._give_back)
        self._connecting = asyncio.Semaphore(CONNECTS_AT_ONCE)
        self._lookup: asyncio.Task[list[tuple[str, int]] | OSError] | None = None

    async def post(self, path: str, body: bytes, timeout: float, headers: HeaderList = ()) -> HttpResponse:
        """Post `body`; `path` is relative to the base URL; `timeout` in seconds from sending to the last byte of
        the reply."""
        return await self._exchange(self._with_body("POST", path, body, headers), timeout)

    async def get(self, path: str, timeout: float, headers: HeaderList = ()) -> HttpResponse:
        return await self._exchange(self._bare("GET", path, headers), timeout)

    async def request(
        self,
        method: str,
        path: str,
        timeout: float,
        *,
        body: bytes | None = None,
        headers: HeaderList = (),
        content_type: bytes = JSON_TYPE,
        once: bool = False,
    ) -> HttpResponse:
        """Send a request of any method but HEAD and CONNECT, whose answers have another frame. `once`: it is not sent
        again, even where a kept-alive connection was closed instead of an answer."""
        if body is None:
            data = self._bare(method, path, headers)
        else:
            data = self._with_body(method, path, body, headers, content_type)
        return await self._exchange(data, timeout, once=once)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, body: bytes | None, timeout: float, headers: HeaderList = ()
    ) -> AsyncIterator[StreamedResponse]:
        """Post `body`, or get `path` where there is none, and yield the reply, which is read while it arrives, as for
        server-sent events and files of any length.

        Leaving the block before the end of the body closes the connection.
        """
        if body is None:
            data = self._bare("GET", path, headers)
        else:
            data = self._with_body("POST", path, body, headers)
        connection = self._idle_connection() or await self._acquire()
        try:
            try:
                response = await connection.send_streaming(data, timeout)
            except StaleConnectionError:
                connection = await self._replace(connection)
                response = await connection.send_streaming(data, timeout)
            self._refuse_redirect(response.status, response.headers)
            response.watch = EVENT_WATCH.get()
            yield response
            if not response.complete:
                connection.abort()
        except BaseException:
            connection.abort()
            raise
        finally:
            self._release(connection)

    async def close(self) -> None:
        """Close all connections; requests under way fail with TransportError."""
        for connection in tuple(self._live):
            connection.abort()
        # Transports report their end on the next turn of the loop.
        await asyncio.sleep(0)

    async def _exchange(self, data: bytes, timeout: float, *, once: bool = False) -> HttpResponse:
        connection = self._idle_connection() or await self._acquire()
        try:
            try:
                response = await connection.send(data, timeout)
            except StaleConnectionError:
                if once:
                    raise
                connection = await self._replace(connection)
                response = await connection.send(data, timeout)
        except BaseException:
            connection.abort()
            self._release(connection)
            raise
        self._release(connection)
        if 300 <= response.status < 400:
            self._refuse_redirect(response.status, response.headers)
        return response

    def _refuse_redirect(self, status: int, headers: Headers) -> None:
        if 300 <= status < 400:
            target = find_header(headers, "location") or "nowhere"
            raise RedirectError(
                f"{self.base_url} redirects ({status}) to {target}, and redirects are not followed, because they would "
                "send the key along.",
                status=status,
                target=target,
            )

    def _idle_connection(self) -> Connection | None:
        while self._idle:
            if not (connection := self._idle.pop()).closed:
                return connection
            self._slots -= 1
        return None

    async def _acquire(self) -> Connection:
        """Return a new connection, or the next that is given back, where none is idle."""
        if self._slots >= self._limit:
            handed = await self._waiters.join()
            if handed is not None and not handed.closed:
                return handed
        else:
            self._slots += 1
        return await self._connect_in_slot()

    def _give_back(self, handed: Connection | None) -> None:
        """Give back a connection, or (None) the slot for a new one."""
        if handed is None:
            self._free_slot()
        else:
            self._release(handed)

    async def _replace(self, stale: Connection) -> Connection:
        """Return a new connection in the place of `stale`, which keeps its slot until the new one stands."""
        fresh = await self._open()
        stale.abort()
        return fresh

    async def _connect_in_slot(self) -> Connection:
        try:
            return await self._open()
        except BaseException:
            self._free_slot()
            raise

    def _release(self, connection: Connection) -> None:
        if connection.closed:
            self._free_slot()
        elif not self._waiters.hand(connection):
            self._idle.append(connection)

    def _free_slot(self) -> None:
        if not self._waiters.hand(None):
            self._slots -= 1

    def _lost(self, connection: Connection) -> None:
        self._live.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
            self._free_slot()

    async def _open(self) -> Connection:
        try:
            async with self._connecting, asyncio.timeout(self._connect_timeout):
                connection = await self._connect()
        except TimeoutError as error:
            raise ConnectError(
                f"No connection to {self._dial_target} within {self._connect_timeout:g} s."
            ) from error
        except ssl.SSLCertVerificationError as error:
            raise ConnectError(
                f"The certificate of {self._where} is not trusted ({error.verify_message}).",
                hint="Set SSL_CERT_FILE to the certificate file of the authority that issued it.",
                certificate=True,
            ) from error
        except OSError as error:
            raise ConnectError(_connect_failure(self._dial_target, error)) from error
        self._live.add(connection)
        return connection

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(loop, self._where, self.max_body, self._lost, self._repeats)
        tls = self._tls_context()
        if self._proxy is not None and tls is not None and self.connect_to is None:
            await self._connect_through(self._proxy, connection, tls)
        else:
            _enable_keepalive(await self._dial(lambda: connection, tls))
        return connection

    async def _dial(
        self, protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None = None
    ) -> asyncio.Transport:
        """Connect to the first address that takes the connection. Raises OSError."""
        loop, name = asyncio.get_running_loop(), self._host if tls else None
        refused: OSError | None = None
        for host, port in await self._addresses():
            try:
                transport, _ = await loop.create_connection(protocol, host, port, ssl=tls, server_hostname=name)
                return transport
            except ssl.SSLError:
                raise
            except OSError as error:
                refused = refused or error
        raise refused or OSError(f"{self._host} has no address")

    async def _addresses(self) -> list[tuple[str, int]]:
        """Return the addresses to connect to, in the resolver's order. Raises OSError.

        One look-up serves all that wait for it. The loop is not left to look names up itself: uvloop forgets about a
        look-up whose connection was given up, and its failure is reported as nobody's.
        """
        host, port = self.connect_to or self._proxy_address() or (self._host, self._port)
        lookup = self._lookup
        if lookup is None or lookup.done():
            lookup = self._lookup = asyncio.create_task(_resolve_host(host, port))
        await asyncio.wait([lookup])
        addresses = lookup.result()
        if isinstance(addresses, OSError):
            raise addresses
        return addresses

    async def _connect_through(self, proxy: Proxy, connection: Connection, tls: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        tunnel = Tunnel()
        transport = await self._dial(lambda: tunnel)
        try:
            authority = _url_authority(self._host, self._port)
            await tunnel.open(authority, proxy)
            secured = await loop.start_tls(transport, tunnel, tls, server_hostname=self._host)
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise TransportError(f"{self._where} closed the connection during the TLS handshake.")
        secured.set_protocol(connection)
        connection.connection_made(secured)
        _enable_keepalive(secured)

    @property
    def _dial_target(self) -> str:
        """Whom a connection is made to."""
        if self._proxy is None or self.connect_to is not None:
            return self._where
        named = f" ({self._proxy.variable})" if self._proxy.variable else ""
        return (
            f"the proxy {_url_authority(self._proxy.host, self._proxy.port)}{named}, which leads to {self._where}"
        )

    def _proxy_address(self) -> tuple[str, int] | None:
        if self._proxy:
            return (self._proxy.host, self._proxy.port)
        return None

    def _tls_context(self) -> ssl.SSLContext | None:
        if self._scheme == "https" and self._tls is None:
            self._tls = ssl.create_default_context()
        if self._scheme == "https":
            return self._tls
        return None

    def _bare(self, method: str, path: str, headers: HeaderList) -> bytes:
        return self._head(method, path, headers) + b"\r\n"

    def _with_body(
        self, method: str, path: str, body: bytes, headers: HeaderList, content_type: bytes = JSON_TYPE
    ) -> bytes:
        head = self._head(method, path, headers)
        return b"%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (head, content_type, len(body), body)

    def _head(self, method: str, path: str, headers: HeaderList) -> bytes:
        key = (method, path, headers)
        if (cached_head := self._heads.get(key)) is not None:
            return cached_head
        if len(self._heads) >= 256:
            self._heads.clear()
        head = self._heads[key] = self._build_head(method, path, headers)
        return head

    def _build_head(self, method: str, path: str, headers: HeaderList) -> bytes:
        absolute = self._proxy is not None and self._scheme == "http" and self.connect_to is None
        target = (self._where if absolute else "") + self._prefix + path
        lines = [f"{method} {target} HTTP/1.1", f"Host: {_url_authority(self._host, self._port, self._scheme)}"]
        fields = {"User-Agent": "newskills", "Accept": "*/*", **dict(self._headers), **dict(headers)}
        if absolute and self._proxy is not None and self._proxy.authorization:
            fields["Proxy-Authorization"] = self._proxy.authorization
        for name, value in fields.items():
            if any(ord(sign) < 32 or ord(sign) > 255 for sign in value):
                raise ConfigError(f"The value of the HTTP header {name} contains a character that cannot be sent.")
            lines.append(f"{name}: {value}")
        return ("\r\n".join(lines) + "\r\n").encode("latin-1")


class Tunnel(asyncio.Protocol):
    """The CONNECT exchange with a proxy (RFC 9110, section 9.3.6), before TLS starts inside it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer = b""
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, authority: str, proxy: Proxy) -> None:
        """Open a tunnel through the proxy. Raises TransportError when the proxy refuses or leaves."""
        assert self._transport is not None
        request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
        if proxy.authorization:
            request += f"Proxy-Authorization: {proxy.authorization}\r\n"
        self._transport.write(f"{request}\r\n".encode())
        await self._ready
        status = self._answer.split(b"\r\n", 1)[0].decode("latin-1")
        if status.split(" ")[1:2] != ["200"]:
            raise TransportError(f"The proxy {proxy.host}:{proxy.port} refuses a tunnel to {authority}: {status}.")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only

    def data_received(self, data: bytes) -> None:
        self._answer += data
        done = b"\r\n\r\n" in self._answer or len(self._answer) > 1 << 16
        if done and not self._ready.done():
            self._ready.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ready.done():
            self._ready.set_exception(TransportError("The proxy closed the connection before it opened a tunnel."))


def split_url(url: str) -> tuple[str, str, int, str]:
    """Split a URL into (scheme, host, port, path prefix). Raises ConfigError; the message never repeats a
    password."""
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ConfigError("The base URL contains a user name or password.")
    try:
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"The base URL {url} has a port that is not a number from 0 to 65535.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"'{url}' is not a base URL; expected for example http://127.0.0.1:5000/v1.")
    if any(sign <= " " for sign in url):
        raise ConfigError(f"The base URL {url!r} contains a blank.")
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), parts.path.rstrip("/")


async def _resolve_host(host: str, port: int) -> list[tuple[str, int]] | OSError:
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    return [(str(address[0]), int(address[1])) for *_, address in addresses]


def _url_authority(host: str, port: int, scheme: str = "") -> str:
    name = f"[{host}]" if ":" in host else host
    if (scheme, port) in (("http", 80), ("https", 443)):
        return name
    return f"{name}:{port}"


def _enable_keepalive(transport: asyncio.BaseTransport) -> None:
    if (sock := transport.get_extra_info("socket")) is None:
        return
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE_PROBES:
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _connect_failure(where: str, error: OSError) -> str:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"Cannot connect to {where}: too many open files; raise `ulimit -n` or send fewer requests at once."
    if isinstance(error, socket.gaierror):
        return f"Cannot connect to {where}: the host name is not known ({error.strerror})."
    return f"Cannot connect to {where}: {error.strerror or error}."
