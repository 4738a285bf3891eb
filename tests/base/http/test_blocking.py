# SPDX-License-Identifier: Apache-2.0
"""Requests that block, against real servers on loopback."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from msgspec import Struct

import newskills
from newskills.base.errors import ConfigError, TransportError
from newskills.base.http.blocking import BlockingClient, Origin, open_url

Answer = tuple[int, dict[str, str], bytes]


class Asked(Struct):
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Place:
    """A server; `answer` decides what each request gets, `asked` keeps them."""

    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        self.asked: list[Asked] = []
        self.connections: set[int] = set()
        place = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                place.connections.add(id(self.connection))
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, body)
                place.asked.append(asked)
                status, headers, content = answer(asked)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content if self.command != "HEAD" else b"")

            do_POST = do_HEAD = do_GET

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def served(answer: Callable[[Asked], Answer]) -> Iterator[Place]:
    place = Place(answer)
    try:
        yield place
    finally:
        place.close()


def text(content: str = "ok", status: int = 200, **headers: str) -> Answer:
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, content.encode()


def test_an_answer_of_any_status_is_returned() -> None:
    with served(lambda asked: text("gone", 404, X_Why="moved")) as place:
        with open_url(f"{place.url}/a/b?c=d#e", headers={"Accept": "x/y"}, private={"Key": "k"}) as reply:
            assert (reply.status, reply.reason) == (404, "Not Found")
            assert reply.headers.get("x-why") == "moved"
            assert (reply.read(2), reply.read(), reply.read()) == (b"go", b"ne", b"")
        (asked,) = place.asked
    assert (asked.method, asked.path) == ("GET", "/a/b?c=d")
    assert (asked.headers["accept"], asked.headers["key"], asked.headers["host"]) == (
        "x/y",
        "k",
        f"127.0.0.1:{place.port}",
    )
    assert asked.headers["user-agent"].startswith("newskills/")


def test_a_body_and_a_method() -> None:
    with served(lambda asked: text(asked.body.decode().upper())) as place:
        with open_url(place.url, method="POST", body=b"abc") as reply:
            assert reply.read() == b"ABC"
        with open_url(place.url, method="HEAD") as reply:
            assert (reply.read(), reply.headers["Content-Length"]) == (b"", "0")
    assert [(asked.method, asked.path) for asked in place.asked] == [("POST", "/"), ("HEAD", "/")]


def test_keys_stay_on_their_host_when_redirected() -> None:
    with served(
        lambda asked: text(f"{asked.path} {asked.headers.get('key')} {asked.headers.get('accept')}")
    ) as other:
        hops = {
            "/first": text("", 302, Location="/second"),
            "/second": text("", 307, Location=f"{other.url.replace('127.0.0.1', 'localhost')}/a b"),
        }
        with (
            served(lambda asked: hops[asked.path]) as place,
            open_url(f"{place.url}/first", headers={"Accept": "all"}, private={"Key": "secret"}) as reply,
        ):
            assert reply.read() == b"/a%20b None all"
        assert [asked.headers.get("key") for asked in place.asked] == ["secret", "secret"]


@pytest.mark.parametrize(("status", "method"), [(303, "GET"), (302, "GET"), (307, "POST"), (308, "POST")])
def test_what_a_redirect_does_with_a_body(status: int, method: str) -> None:
    answers = {"/": text("", status, Location="/there"), "/there": text("there")}
    with (
        served(lambda asked: answers[asked.path]) as place,
        open_url(place.url, method="POST", body=b"x") as reply,
    ):
        assert reply.read() == b"there"
        assert (place.asked[1].method, place.asked[1].body) == (method, b"x" if method == "POST" else b"")


def test_redirects_end() -> None:
    with served(lambda asked: text("", 302, Location=f"/{len(asked.path)}0")) as place:
        with open_url(place.url, redirects=0) as reply:
            assert reply.status == 302
        with open_url(place.url) as reply:
            assert reply.status == 302
    assert len(place.asked) == 1 + 11


def test_a_proxy_is_asked_for_the_whole_address_and_loopback_never_is() -> None:
    with served(lambda asked: text("by the proxy")) as proxy:
        environ = {"http_proxy": f"http://me:pass@127.0.0.1:{proxy.port}"}
        with open_url("http://model.example:81/x?y", environ=environ) as reply:
            assert reply.read() == b"by the proxy"
        assert proxy.asked[0].path == "http://model.example:81/x?y"
        assert proxy.asked[0].headers["proxy-authorization"] == "Basic bWU6cGFzcw=="
        with served(lambda asked: text("itself")) as place, open_url(place.url, environ=environ) as reply:
            assert reply.read() == b"itself"
        client = BlockingClient("http://model.example/v1", environ, timeout=10)
        assert client.post("/tokenize", b"{}", {}).body == b"by the proxy"
        assert proxy.asked[-1].path == "http://model.example/v1/tokenize"
        client.close()
    with pytest.raises(ConfigError, match="http_proxy must be"):
        open_url("http://model.example", environ={"http_proxy": "socks5://x"})


@pytest.mark.parametrize("url", ["ftp://x/y", "file:///etc/passwd", "x", "http://", "http://h:99999/"])
def test_what_is_no_http_address(url: str) -> None:
    with pytest.raises(TransportError, match="is not an http address"):
        open_url(url)
    with pytest.raises(TransportError):
        Origin.of(url)


def test_what_is_no_answer() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(TransportError, match="Connection refused"):
        open_url(f"http://127.0.0.1:{port}")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TransportError, match="timed out"):
        open_url(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)
    with pytest.raises(TransportError, match="control characters"):
        open_url("http://127.0.0.1:1/a b")


def test_a_body_that_is_cut() -> None:
    with served(lambda asked: (200, {"Content-Length": "100", "Connection": "close"}, b"abc")) as place:
        with open_url(place.url) as reply, pytest.raises(TransportError, match="IncompleteRead"):
            reply.read()
        with open_url(place.url) as reply:
            assert reply.read_some(100) == b"abc"


def test_connections_are_kept_and_made_anew_where_the_server_has_closed_one() -> None:
    closing: list[bool] = []

    def answer(asked: Asked) -> Answer:
        return text(asked.path, **({"Connection": "close"} if closing else {}))

    with served(answer) as place:
        client = BlockingClient(f"{place.url}/v1/", {}, timeout=10)
        for _ in range(3):
            assert client.post("/x", b"{}", {"A": "b"}).body == b"/v1/x"
        assert len(place.connections) == 1
        closing.append(True)
        for _ in range(3):
            assert client.post("/x", b"{}", {}).status == 200
        client.close()
    with pytest.raises(TransportError, match="refused"):
        client.post("/x", b"{}", {})


def test_threads_share_a_client() -> None:
    with served(lambda asked: text(asked.body.decode())) as place:
        client = BlockingClient(place.url, {}, timeout=10)
        replies: dict[int, bytes] = {}

        def ask(number: int) -> None:
            for _ in range(20):
                replies[number] = client.post("/", str(number).encode(), {}).body

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
    assert replies == {number: str(number).encode() for number in range(8)}


def test_nothing_else_speaks_http_by_the_standard_library() -> None:
    """One way for what blocks, and one for the hot path: `base/http/client.py`."""
    root = Path(newskills.__file__).parent
    imports = re.compile(
        r"^\s*(?:import|from) (?:http\.client|urllib\.(?:request|error)|requests|aiohttp)\b", re.M
    )
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    assert [name for name, text in texts.items() if imports.search(text)] == ["base/http/blocking.py"]
