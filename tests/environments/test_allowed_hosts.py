# SPDX-License-Identifier: Apache-2.0
"""Containers that may reach some hosts: what the rules say, and that there is no other way out."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.environments.images import ENGINE, own_containers
from tests.environments.test_services import places

from newskills.base.environment import AllowedHosts, EnvironmentSpec, ServiceGroup, TaskService
from newskills.environments.allowed_hosts import HostRules, server_name
from newskills.environments.config import EnvironmentConfig
from newskills.environments.containers import ContainerPool

SOON = 60.0
GET = (
    'python3 -c \'import urllib.request as u; print(u.urlopen("{}", timeout=20).read().decode(), end="")\' '
    "2>&1 | tail -1"
)


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


@pytest.fixture
def page() -> Iterator[tuple[str, int]]:
    """A server of this machine at an address that is no loopback's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        place = probe.getsockname()[0]
    with ThreadingHTTPServer((place, 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield place, server.server_port
        server.shutdown()


def test_only_allowed_hosts_are_reached(
    agent_image: str, page: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, port = page
    real = socket.getaddrinfo

    def resolve(host: object, *words: object, **more: object) -> object:
        return real(place if str(host).endswith(".test") else host, *words, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
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
