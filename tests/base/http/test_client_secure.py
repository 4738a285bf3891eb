# SPDX-License-Identifier: Apache-2.0
"""The client through TLS and proxies, and on another event loop."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.base.http._loopback import Loopback, Play, always, loopback, response, run

from newskills.base.errors import ConnectError, TransportError
from newskills.base.http.client import HttpClient
from newskills.base.http.proxy import Proxy

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


def _authority(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """(server's context, client's context that trusts it)."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the program openssl is needed to make a certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    options = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(cert)]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, *options]
    subprocess.run(command, check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=str(cert))


def test_tls(tmp_path: Path) -> None:
    server, trusting = _authority(tmp_path)

    async def work() -> None:
        async with loopback(always(response(b"secret")), tls=server) as place:
            url = f"https://localhost:{place.port}"
            client = HttpClient(url, tls=trusting)
            for _ in range(2):
                assert (await client.post("/", b"", 5)).body == b"secret"
            assert place.connections == 1
            await client.close()
            stranger = HttpClient(url)
            with pytest.raises(ConnectError, match="SSL_CERT_FILE") as caught:
                await stranger.post("/", b"", 5)
            assert caught.value.certificate

    run(work())


def test_plain_http_to_a_port_of_tls_says_so(tmp_path: Path) -> None:
    server, _ = _authority(tmp_path)

    async def work() -> None:
        async with loopback(always(response(b"secret")), tls=server) as place:
            client = HttpClient(f"http://127.0.0.1:{place.port}")
            with pytest.raises(TransportError, match="https://"):
                await client.post("/", b"", 5)
            await client.close()
        async with loopback(always(b"\x15\x03\x01\x00\x02\x02\x46")) as place:
            client = HttpClient(place.url)
            with pytest.raises(TransportError, match="speaks TLS: use https://"):
                await client.post("/", b"", 5)
            await client.close()

    run(work())


def _proxy(allowed: str = "Basic dTpw") -> Play:
    async def pump(reader: Reader, writer: Writer) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:  # also where the server is stopped before it has heard that its client has left
            writer.close()

    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        heard = await place.hear(reader)
        assert heard is not None
        if heard.headers.get("proxy-authorization") != allowed:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif heard.line.startswith("CONNECT"):
            host, _, port = heard.path.partition(":")
            upstream_reader, upstream = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(pump(reader, upstream), pump(upstream_reader, writer), return_exceptions=True)
        else:
            writer.write(response(heard.path.encode()))
        await writer.drain()

    return play


def test_a_proxy_tunnels_tls(tmp_path: Path) -> None:
    server, trusting = _authority(tmp_path)

    async def work() -> None:
        async with (
            loopback(always(response(b"through")), tls=server) as place,
            loopback(_proxy()) as proxy,
        ):
            url = f"https://localhost:{place.port}"
            client = HttpClient(url, tls=trusting, proxy=Proxy("127.0.0.1", proxy.port, "Basic dTpw"))
            for _ in range(2):
                assert (await client.post("/", b"", 5)).body == b"through"
            assert proxy.heard[0].line == f"CONNECT localhost:{place.port} HTTP/1.1"
            assert proxy.connections == 1
            assert "proxy-authorization" not in place.heard[0].headers
            await client.close()
            refused = HttpClient(url, tls=trusting, proxy=Proxy("127.0.0.1", proxy.port))
            with pytest.raises(TransportError, match="407"):
                await refused.post("/", b"", 5)
            await refused.close()

    run(work())


def test_a_proxy_gets_plain_requests_with_the_whole_address() -> None:
    async def work() -> None:
        async with loopback(_proxy()) as proxy:
            client = HttpClient("http://model.example/v1", proxy=Proxy("127.0.0.1", proxy.port, "Basic dTpw"))
            assert (await client.post("/chat", b"", 5)).body == b"http://model.example:80/v1/chat"
            await client.close()

    run(work())


def test_uvloop_works_as_well(tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop")
    server, trusting = _authority(tmp_path)

    async def work() -> None:
        async with (
            loopback(always(response(b"fast"))) as place,
            loopback(always(response(b"tls")), tls=server) as safe,
        ):
            client = HttpClient(place.url, limit=10)
            replies = await asyncio.gather(*(client.post("/", b"", 5) for _ in range(100)))
            assert {reply.body for reply in replies} == {b"fast"}
            await client.close()
            client = HttpClient(f"https://localhost:{safe.port}", tls=trusting)
            assert (await client.post("/", b"", 5)).body == b"tls"
            await client.close()

    uvloop.run(work())
