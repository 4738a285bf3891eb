# SPDX-License-Identifier: Apache-2.0
"""Containers that may reach some hosts: what the rules say, and that there is no other way out."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.environments.engines.test_services import places
from tests.environments.images import ENGINE, own_containers

from newskills.base.environment import AllowedHosts, EnvironmentSpec, ServiceGroup, TaskService
from newskills.environments.allowed_hosts import TLS, HostRules, server_name
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool

SOON = 60.0
GET = (
    'python3 -c \'import urllib.request as u; print(u.urlopen("{}", timeout=20).read().decode(), end="")\' '
    "2>&1 | tail -1"
)
OTHER_NAME = (
    'python3 -c \'import socket, ssl; s = socket.create_connection(("a.test", 443), 20); '
    'ssl.create_default_context().wrap_socket(s, server_hostname="c.test")\' 2>&1 | tail -1'
)
"""Connects as to an allowed host, and names another one in TLS."""


@pytest.mark.parametrize(
    ("hosts", "host", "address", "allowed"),
    [
        (["a.example"], "A.example.", "8.8.8.8", True),
        (["a.example"], "b.a.example", "8.8.8.8", False),
        (["*.example"], "b.a.example", "8.8.8.8", True),
        (["*.example"], "example", "8.8.8.8", False),
        (["a.example"], "a.example", "127.0.0.1", False),
        (["a.example"], "a.example", "169.254.169.254", False),
        (["10.1.0.0/16"], "10.1.2.3", "10.1.2.3", True),
        (["10.1.0.0/16"], "10.2.2.3", "10.2.2.3", False),
        (["2001:db8::1"], "2001:db8::1", "2001:db8::1", True),
        ([], "a.example", "8.8.8.8", False),
        (None, "a.example", "8.8.8.8", True),
        (None, "localhost", "::1", False),
    ],
)
def test_rules(hosts: list[str] | None, host: str, address: str, allowed: bool) -> None:
    assert HostRules(hosts).allows(host, ipaddress.ip_address(address)) is allowed


def test_the_name_in_tls() -> None:
    """The first message of Python's own client."""
    client, into, out = ssl.create_default_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        client.wrap_bio(into, out, server_hostname="www.a.example").do_handshake()
    message = out.read()
    assert server_name(message[0], message[5:]) == "www.a.example"
    with pytest.raises(ValueError, match="no TLS"):
        server_name(0x47, b"ET / HTTP/1.1")


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = f"{self.headers['Host']} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def page_at(port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, int]]:
    """A server of this machine at an address that is no loopback's, which all names that end in `.test` mean."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        place = probe.getsockname()[0]
    real = socket.getaddrinfo

    def resolve(host: object, *words: object, **more: object) -> object:
        return real(place if str(host).endswith(".test") else host, *words, **more)

    with ThreadingHTTPServer((place, port), Page) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", resolve)
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield place, server.server_port
        server.shutdown()


@pytest.fixture
def page() -> Iterator[tuple[str, int]]:
    with page_at() as server:
        yield server


def test_only_allowed_hosts_are_reached(agent_image: str, page: tuple[str, int]) -> None:
    place, port = page
    group = ServiceGroup(services=[TaskService(name="main", image=agent_image)])
    spec = EnvironmentSpec(image=agent_image, group=group, allowed=AllowedHosts(named=["a.test"], first=[]))

    async def work() -> None:
        containers = ContainerPool(EnvironmentConfig(engine=ENGINE, memory_mb=512, network=True), os.environ)
        try:
            environment = await containers.start(spec)

            async def read(address: str, before: str = "") -> str:
                return (await environment.execute(before + GET.format(address), timeout=SOON)).output.decode()

            assert "403" in await read(f"http://a.test:{port}/x"), "the first phase is closed"
            await environment.set_phase(user="", online=False, hosts=["a.test", "*.b.test"])
            assert await read(f"http://a.test:{port}/x?y") == f"a.test:{port} /x?y"
            assert await read(f"http://c.b.test:{port}/") == f"c.b.test:{port} /"
            assert "403" in await read(f"http://c.test:{port}/")
            assert "403" in await read(f"http://{place}:{port}/"), "an address is no name"
            direct = "unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY; "
            assert "unreachable" in await read(f"http://{place}:{port}/", direct), "there is no other way"
            looked = await environment.execute(f"{direct} grep -w a.test /etc/hosts", timeout=SOON)
            assert looked.exit_code == 0, "programs without proxies are led there, too"
            await environment.execute("sleep 600", timeout=0.5)
            assert await read(f"http://a.test:{port}/") == f"a.test:{port} /", "also after a restart"
            await environment.set_phase(user="", online=True)
            assert await read(f"http://{place}:{port}/") == f"{place}:{port} /"
            await environment.set_phase(user="", online=False)
            assert "403" in await read(f"http://a.test:{port}/")
        finally:
            await containers.close()
        assert (own_containers(), places()) == ([], [])

    asyncio.run(work())


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may listen at port 443")
def test_tls_reaches_allowed_hosts_from_end_to_end(agent_image: str, tmp_path: Path) -> None:
    """By CONNECT, and by the name in TLS alone; the certificate that the container sees is the host's own."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=a.test", "-addext", "subjectAltName=DNS:a.test,DNS:c.test", "-days", "2"]
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*words, *names], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    group = ServiceGroup(services=[TaskService(name="main", image=agent_image)])
    spec = EnvironmentSpec(
        image=agent_image, group=group, allowed=AllowedHosts(named=["a.test"], first=["a.test"])
    )

    async def work(port: int) -> None:
        containers = ContainerPool(EnvironmentConfig(engine=ENGINE, memory_mb=512, network=True), os.environ)
        try:
            environment = await containers.start(spec)
            await environment.execute("cat > /tmp/c.pem", timeout=SOON, stdin=certificate.read_bytes())

            async def read(address: str, before: str = "") -> str:
                line = f"{before}export SSL_CERT_FILE=/tmp/c.pem; {GET.format(address)}"
                return (await environment.execute(line, timeout=SOON)).output.decode()

            assert await read(f"https://a.test:{port}/x") == f"a.test:{port} /x"
            assert "403" in await read(f"https://c.test:{port}/"), "the proxy does not connect"
            await environment.set_phase(user="", online=False, hosts=["*.test"])
            assert await read(f"https://c.test:{port}/") == f"c.test:{port} /"
            assert "Hostname mismatch" in await read(f"https://b.test:{port}/"), "it is checked in the container"
            await environment.set_phase(user="", online=False, hosts=["a.test"])
            direct = "unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY; "
            assert await read("https://a.test/y", direct) == "a.test /y", "by the name in TLS"
            other = await environment.execute(OTHER_NAME, timeout=SOON)
            assert b"EOF" in other.output or b"reset" in other.output, other.output
        finally:
            await containers.close()
        assert (own_containers(), places()) == ([], [])

    with page_at(TLS, tls) as (_, port):
        asyncio.run(work(port))
