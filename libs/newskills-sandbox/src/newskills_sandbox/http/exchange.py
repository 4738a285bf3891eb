# SPDX-License-Identifier: Apache-2.0
"""Requests over plain HTTP/1.1, each on a connection of its own: by leaving, a client ends its work at the server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from newskills_sandbox.errors import SettingsError
from newskills_sandbox.http.client import ExchangeError, ExchangeTimeoutError
from newskills_sandbox.http.messages import HeaderFields

MAX_BODY = 256 << 20
CONNECT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """A status and a whole body."""

    status: int
    body: bytes


class PlainExchange:
    """Implements `Exchange` with asyncio alone, for http:// addresses. Raises SettingsError for others."""

    def __init__(self, address: str, token: str = "") -> None:
        parts = urlsplit(address)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme != "http" or not parts.hostname or port == -1:
            raise SettingsError(f"The sandbox's address must be http://HOST:PORT, not {address!r}.")
        self._host, self._port = parts.hostname, port or 80
        self._prefix = parts.path.rstrip("/")
        self._fields = [("Host", parts.netloc.rpartition("@")[2]), ("Connection", "close")]
        if token:
            self._fields.append(("Authorization", f"Bearer {token}"))

    async def send(
        self, method: str, path: str, timeout: float, body: bytes | None = None, headers: HeaderFields = ()
    ) -> ReceivedAnswer:
        """Send one request and return its answer. Raises ExchangeError."""
        fields = [*self._fields, *headers, ("Accept", "application/json")]
        if body is not None:
            fields += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        lines = [f"{method} {self._prefix}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
        data = "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")
        try:
            async with asyncio.timeout(timeout):
                return await self._exchange_once(data)
        except TimeoutError:
            raise ExchangeTimeoutError(f"no answer within {timeout:g} s.") from None
        except OSError as error:
            raise ExchangeError(f"{error.strerror or error}.", broken=True) from error
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            raise ExchangeError(f"the answer is broken ({type(error).__name__}).", broken=True) from error

    async def close(self) -> None:
        """Do nothing: no connection outlives its request."""

    async def _exchange_once(self, data: bytes) -> ReceivedAnswer:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(data)
            await writer.drain()
            status, fields = await _read_head(reader)
            while 100 <= status < 200:
                status, fields = await _read_head(reader)
            return ReceivedAnswer(status, await _read_body(reader, fields))
        finally:
            writer.transport.abort()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, Mapping[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def _read_body(reader: asyncio.StreamReader, fields: Mapping[str, str]) -> bytes:
    """Return the whole body. Raises ValueError where it is too large or has no sensible length."""
    body = bytearray()
    if "chunked" in fields.get("transfer-encoding", "").lower():
        while size := int((await reader.readuntil(b"\n")).split(b";")[0], 16):
            body += await reader.readexactly(_check_size(size + len(body)) - len(body))
            await reader.readuntil(b"\n")
        return bytes(body)
    if "content-length" in fields:
        return await reader.readexactly(_check_size(int(fields["content-length"])))
    while piece := await reader.read(1 << 16):
        body += piece
        _check_size(len(body))
    return bytes(body)


def _check_size(size: int) -> int:
    if not 0 <= size <= MAX_BODY:
        raise ValueError(f"a body of {size} bytes")
    return size
