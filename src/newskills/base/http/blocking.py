# SPDX-License-Identifier: Apache-2.0
"""Requests that block: downloads, probes, look-ups. What asks models all day is `client`.

Every answer is returned, whatever its status; what is no answer raises TransportError, whose text is the reason.
Proxies are those of `environ` (`proxy.py`), certificates those that OpenSSL trusts (SSL_CERT_FILE).
"""

from __future__ import annotations

import http.client
import os
import string
import threading
from collections.abc import Mapping
from email.message import Message
from types import TracebackType
from typing import Self
from urllib.parse import quote, urljoin, urlsplit

from msgspec import Struct

from newskills._version import __version__
from newskills.base.errors import TransportError
from newskills.base.http.proxy import Proxy, proxy_for

USUAL_PORTS = {"http": 80, "https": 443}
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 10
USER_AGENT = f"newskills/{__version__}"


class BlockingResponse:
    """An answer whose body is read when it is wanted. Close it, or use it as a context."""

    def __init__(self, connection: http.client.HTTPConnection, reply: http.client.HTTPResponse) -> None:
        self._connection, self._reply = connection, reply
        self.status, self.reason = reply.status, reply.reason
        self.headers: Message = reply.headers

    def read(self, size: int | None = None) -> bytes:
        """Return at most `size` bytes, or all that is left; b"" at the end. Raises TransportError."""
        try:
            return self._reply.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise TransportError(reason_of(error)) from error

    def read_some(self, most: int) -> bytes:
        """Return what has arrived, `most` bytes at most; b"" at the end. Raises TransportError."""
        try:
            return self._reply.read1(most)
        except (OSError, http.client.HTTPException) as error:
            raise TransportError(reason_of(error)) from error

    def close(self) -> None:
        self._reply.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_url(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] = {},
    private: Mapping[str, str] = {},
    body: bytes | None = None,
    timeout: float = 60.0,
    environ: Mapping[str, str] | None = None,
    redirects: int = MOST_REDIRECTS,
) -> BlockingResponse:
    """Send one request and return the answer; its body is not read yet.

    private    headers that a redirect to another host or scheme leaves out, such as keys
    timeout    seconds without any byte
    environ    where proxies are looked for; None: the process's own; empty: none is used
    redirects  how many are followed; what is left then is the answer

    Raises TransportError, ConfigError for a proxy that cannot be used.
    """
    origin = urlsplit(url)[:2]
    if environ is None:
        environ = os.environ
    for left in range(redirects, -1, -1):
        keys = private if urlsplit(url)[:2] == origin else {}
        answer = _send_request(url, method, {**headers, **keys}, body, timeout, environ)
        location = answer.headers.get("Location")
        if not left or answer.status not in REDIRECT_STATUSES or location is None:
            return answer
        answer.close()
        url = urljoin(url, quote(location, safe=string.punctuation))
        if method not in ("GET", "HEAD") and answer.status in (301, 302, 303):
            method, body = "GET", None
    raise AssertionError("the loop returns")


def _send_request(
    url: str,
    method: str,
    headers: Mapping[str, str],
    body: bytes | None,
    timeout: float,
    environ: Mapping[str, str],
) -> BlockingResponse:
    origin = Origin.of(url)
    parts = urlsplit(url)
    path = parts._replace(scheme="", netloc="", fragment="", path=parts.path or "/").geturl()
    proxy = proxy_for(url, environ)
    connection = open_connection(origin, proxy, timeout)
    words = {"User-Agent": USER_AGENT, "Connection": "close", **headers}
    try:
        connection.request(method, *target_of(path, origin, proxy, words, body))
        return BlockingResponse(connection, connection.getresponse())
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        connection.close()
        raise TransportError(reason_of(error)) from error


class Origin(Struct, frozen=True):
    """Scheme, host and port of a server."""

    scheme: str
    host: str
    port: int

    @staticmethod
    def of(url: str) -> Origin:
        """Return the origin of an address. Raises TransportError for what is no http address."""
        parts = urlsplit(url)
        try:
            port = parts.port or USUAL_PORTS.get(parts.scheme, -1)
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port < 0:
            raise TransportError(f"'{url[:100]}' is not an http address")
        return Origin(parts.scheme, parts.hostname, port)

    @property
    def authority(self) -> str:
        """Host and port as they stand in an address: without a port that is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.port == USUAL_PORTS[self.scheme]:
            return host
        return f"{host}:{self.port}"


def open_connection(origin: Origin, proxy: Proxy | None, timeout: float) -> http.client.HTTPConnection:
    """Return a connection to the server, or to the proxy in front of it; nothing is sent yet."""
    kind = http.client.HTTPSConnection if origin.scheme == "https" else http.client.HTTPConnection
    if proxy is None:
        return kind(origin.host, origin.port, timeout=timeout)
    connection = kind(proxy.host, proxy.port, timeout=timeout)
    if origin.scheme == "https":
        headers = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
        connection.set_tunnel(origin.host, origin.port, headers)
    return connection


def target_of(
    path: str, origin: Origin, proxy: Proxy | None, headers: Mapping[str, str], body: bytes | None
) -> tuple[str, bytes | None, dict[str, str]]:
    """Return target, body and headers of a request as the server, or the proxy in front of it, takes them."""
    if proxy is None or origin.scheme != "http":
        return path, body, dict(headers)
    if proxy.authorization:
        authorization = {"Proxy-Authorization": proxy.authorization}
    else:
        authorization = {}
    return f"http://{origin.authority}{path}", body, {**headers, **authorization}


class BlockingReply(Struct, frozen=True):
    """A whole answer: status, headers as received, body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class BlockingClient:
    """Requests to one server over connections that are kept. Threads may share it.

    Raises TransportError for what is no http address, ConfigError for a proxy that cannot be used.
    """

    def __init__(self, base_url: str, environ: Mapping[str, str], *, timeout: float) -> None:
        self._origin, self._prefix = Origin.of(base_url), urlsplit(base_url).path.rstrip("/")
        self._proxy, self._timeout = proxy_for(base_url, environ), timeout
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> BlockingReply:
        """Send `body` and return the answer; once more over a new connection where a kept one has ended.

        Raises TransportError.
        """
        target, data, words = target_of(f"{self._prefix}{path}", self._origin, self._proxy, headers, body)
        for last in (False, True):
            connection = self._connection(fresh=last)
            try:
                connection.request("POST", target, data, words)
                reply = connection.getresponse()
                raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.getheaders()]
                answer = BlockingReply(reply.status, raw, reply.read())
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if last:
                    raise TransportError(reason_of(error)) from error
            else:
                with self._lock:
                    self._idle.append(connection)
                return answer
        raise AssertionError("the loop returns or raises")

    def close(self) -> None:
        """Close connections that are not in use."""
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def _connection(self, *, fresh: bool) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle and not fresh:
                return self._idle.pop()
        return open_connection(self._origin, self._proxy, self._timeout)


def reason_of(error: Exception) -> str:
    """Return why there was no answer, in the words of the system."""
    return str(error) or type(error).__name__
