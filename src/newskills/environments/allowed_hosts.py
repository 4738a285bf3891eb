# SPDX-License-Identifier: Apache-2.0
"""The only way out for containers that may reach some hosts: a proxy of this process on the network that they have.

It listens at the address of this machine in that network, which leads nowhere else. Programs find it by the variables
for proxies; names that are listed in full lead to it by themselves (80: the header Host, 443: the name in TLS).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
from collections.abc import Coroutine, Sequence
from urllib.parse import urlsplit

from newskills.base.errors import EnvironmentFailedError

LARGEST_HEAD = 1 << 16
PATIENCE = 30.0
"""Seconds for the head of a request, and for a connection to its host."""
CHUNK = 1 << 16
HTTP, TLS = 80, 443
OF_PROXIES = (b"proxy-", b"connection:")
"""What fields of a request begin with that are no business of the host's."""
_FREEBIND = 15
"""IP_FREEBIND of Linux, which the module socket does not name."""
_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 0x16, 0x01, 0
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class RefusedHostError(Exception):
    """The host may not be reached in this phase of the task."""


class HostRules:
    """Which hosts may be reached: all, none, or those listed (names, `*.` and a name, addresses, networks)."""

    def __init__(self, hosts: Sequence[str] | None) -> None:
        """Create the rules; None: all hosts."""
        self._allows_all = hosts is None
        self._names: list[str] = []
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for host in hosts or ():
            try:
                self._networks.append(ipaddress.ip_network(host))
            except ValueError:
                self._names.append(host.lower())

    def names(self, host: str) -> bool:
        """Return whether the name is listed, in full or by its end."""
        host = host.lower().rstrip(".")
        return any(host == name or (name.startswith("*.") and host.endswith(name[1:])) for name in self._names)

    def allows(self, host: str, address: Address) -> bool:
        """Return whether `host`, which has this address, may be reached. This machine's own services never are by a
        name."""
        if any(address in network for network in self._networks):
            return True
        if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
            return False
        return self._allows_all or self.names(host)


class HostProxy:
    """Of one environment; `rules` are those of the phase that its task is in."""

    def __init__(self, place: str) -> None:
        """Create the proxy; `place`: address of this machine in the network."""
        self.rules = HostRules([])
        self.address = ""
        self._place = place
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen, though the network may begin with its first container."""
        proxy = await asyncio.start_server(
            self._serve_proxy, sock=_bind_socket(self._place, 0), limit=LARGEST_HEAD
        )
        self._servers.append(proxy)
        self.address = f"http://{self._place}:{proxy.sockets[0].getsockname()[1]}"
        for port, serve in ((HTTP, self._plain), (TLS, self._serve_tls)):
            with contextlib.suppress(OSError):  # low ports are root's: then there are only the variables
                listening = _bind_socket(self._place, port)
                self._servers.append(await asyncio.start_server(serve, sock=listening, limit=LARGEST_HEAD))

    def check(self) -> None:
        """Raise EnvironmentFailedError where a network with containers has no address of this machine: it is that of a
        user's podman, or of an engine on another machine."""
        try:
            with socket.socket() as probe:
                probe.bind((self._place, 0))
        except OSError as error:
            raise EnvironmentFailedError(
                f"The task may reach some hosts only, and the network of its containers is out of reach here: {error}.",
                hint="Use podman as root, or docker on this machine itself.",
            ) from error

    async def close(self) -> None:
        """Stop listening and end what is open."""
        for server in self._servers:
            server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def variables(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return the variables that lead programs here, but for the environment's own hosts."""
        direct = ",".join(("localhost", "127.0.0.1", *hosts))
        values = {"http_proxy": self.address, "https_proxy": self.address, "no_proxy": direct}
        return {**values, **{name.upper(): value for name, value in values.items()}}

    async def _serve_proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def work() -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            line, _, fields = head.partition(b"\r\n")
            method, target, version = line.decode("latin-1").split(" ", 2)
            if method == "CONNECT":
                host, _, port = target.rpartition(":")
                await self._join(reader, writer, host.strip("[]"), int(port), b"", b"HTTP/1.1 200 OK\r\n\r\n")
                return
            url = urlsplit(target)
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            lines = [f"{method} {path} {version}".encode("latin-1"), b"Connection: close"]
            lines += [field for field in fields.split(b"\r\n") if not field.lower().startswith(OF_PROXIES)]
            first = b"\r\n".join(lines)
            await self._join(reader, writer, url.hostname or "", url.port or HTTP, first)

        await self._serve_connection(work(), writer, plain=True)

    async def _plain(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def work() -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(field.partition(b":")[::2] for field in head.lower().split(b"\r\n")[1:])
            host = fields.get(b"host", b"").decode("latin-1").strip().partition(":")[0]
            await self._join(reader, writer, host, HTTP, head)

        await self._serve_connection(work(), writer, plain=True)

    async def _serve_tls(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def work() -> None:
            record = await reader.readexactly(5)
            hello = await reader.readexactly(int.from_bytes(record[3:], "big"))
            await self._join(reader, writer, server_name(record[0], hello), TLS, record + hello)

        await self._serve_connection(work(), writer, plain=False)

    async def _serve_connection(
        self, work: Coroutine[None, None, None], writer: asyncio.StreamWriter, *, plain: bool
    ) -> None:
        """Do the work of a connection; whatever a program sends is no failure of ours."""
        task = asyncio.ensure_future(work)
        self._open.add(task)
        try:
            await task
        except RefusedHostError as error:
            if plain:
                text = f"{error}\n".encode("utf-8", "replace")
                writer.write(
                    b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(text)
                )
                writer.write(text)
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open.discard(task)
            with contextlib.suppress(OSError):
                writer.close()

    async def _join(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        port: int,
        first: bytes,
        answer: bytes = b"",
    ) -> None:
        """Connect to the host, send `first` there and `answer` back, and copy both ways. Raises RefusedHostError,
        OSError."""
        async with asyncio.timeout(PATIENCE):
            address = await self._resolve_allowed(host, port)
            there, here = await asyncio.open_connection(str(address), port)
        try:
            here.write(first)
            writer.write(answer)
            await asyncio.gather(_copy_stream(reader, here), _copy_stream(there, writer))
        finally:
            here.close()

    async def _resolve_allowed(self, host: str, port: int) -> Address:
        """Return the address to connect to. A name is looked up once, so that it cannot mean another host then."""
        rules = self.rules
        try:
            addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            addresses = []
        for *_, place in addresses:
            address = ipaddress.ip_address(str(place[0]).partition("%")[0])
            if rules.allows(host, address):
                return address
        raise RefusedHostError(f"The task does not allow the host '{host}', or it has no address.")


def _bind_socket(place: str, port: int) -> socket.socket:
    """Return a socket of an address that this machine may only have later. Raises OSError."""
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_IP, _FREEBIND, 1)
        bound.bind((place, port))
    except OSError:
        bound.close()
        raise
    return bound


async def _copy_stream(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK):
        target.write(data)
        await target.drain()
    with contextlib.suppress(OSError):
        target.write_eof()


def server_name(kind: int, hello: bytes) -> str:
    """Return the name of the host in the first message of TLS (RFC 6066). Raises ValueError where there is none."""
    if kind != _HANDSHAKE or hello[:1] != bytes([_CLIENT_HELLO]):
        raise ValueError("this is no TLS")
    place = 4 + 2 + 32
    for width in (1, 2, 1):  # session, ciphers, compression
        place += width + int.from_bytes(hello[place : place + width], "big")
    place += 2
    while place + 4 <= len(hello):
        extension, size = struct.unpack_from(">HH", hello, place)
        if extension == _SERVER_NAME:
            name = hello[place + 9 : place + 4 + size]
            return name.decode("ascii")
        place += 4 + size
    raise ValueError("the message of TLS names no host")
