# SPDX-License-Identifier: Apache-2.0
"""The server over real sockets: frames and limits."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.base.http._loopback import run
from tests.base.http._wire import SHORT, post, said, served, wired

from newskills.base.errors import ServerStartError
from newskills.base.http.client import HttpClient
from newskills.base.http.messages import (
    HttpRequest,
    Response,
    error_response,
    not_found,
    wrong_method,
)
from newskills.base.http.server import ServerLimits


def test_a_request_is_understood_as_sent() -> None:
    data = post(b"hi", b"X-Two: a", b"x-two: b", b"X-Latin: \xe9", path=b"/a%2Fb?q=1&r=?")
    status, got, closing = run(said(data))
    assert (status, closing) == (200, False)
    assert (got["method"], got["path"], got["query"], got["body"]) == ("POST", "/a%2Fb", "q=1&r=?", "hi")
    assert (got["headers"]["x-two"], got["headers"]["x-latin"]) == ("a, b", "é")


def test_the_absolute_form_of_an_address_loses_its_host() -> None:
    _, got, _ = run(said(b"GET http://h:1/a/b?c HTTP/1.1\r\nHost: h\r\n\r\n"))
    assert (got["path"], got["query"]) == ("/a/b", "c")


def test_chunked_bodies_with_extensions_and_trailers() -> None:
    data = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nX-Late: 1\r\n\r\n"
    status, got, _ = run(said(data))
    assert (status, got["body"]) == (200, "abcd")
    assert "x-late" not in got["headers"]


def test_ten_thousand_requests_over_one_connection() -> None:
    async def play() -> int:
        async with served() as server:
            client = HttpClient(server.url, limit=1)
            for number in range(10_000):
                answer = await client.post("/n", b"%d" % number, 5)
                assert msgspec.json.decode(answer.body)["body"] == str(number)
            connections = len(server.connections)
            await client.close()
            return connections

    assert run(play()) == 1


def test_pipelined_requests_are_answered_in_order_whatever_they_take() -> None:
    async def slow_first(request: HttpRequest) -> Response:
        await asyncio.sleep(0.05 if request.path == "/0" else 0)
        return Response(body=request.path.encode())

    async def play() -> list[bytes]:
        async with served(slow_first) as server, wired(server) as wire:
            wire.writer.write(b"".join(post(b"x" * 50, path=b"/%d" % n) for n in range(500)))
            return [(await wire.answer())[2] for _ in range(500)]

    assert run(play()) == [b"/%d" % n for n in range(500)]


def test_many_connections_at_once() -> None:
    async def play() -> set[str]:
        async with served() as server:
            client = HttpClient(server.url, limit=200)
            answers = await asyncio.gather(*(client.post("/", b"%d" % n, 10) for n in range(1000)))
            await client.close()
            return {msgspec.json.decode(answer.body)["body"] for answer in answers}

    assert run(play()) == {str(n) for n in range(1000)}


@settings(max_examples=60)
@given(
    bodies=st.lists(st.binary(max_size=40), min_size=1, max_size=5),
    chunked=st.booleans(),
    cuts=st.lists(st.integers(0, 2000), max_size=12),
)
def test_requests_may_be_cut_anywhere(bodies: list[bytes], chunked: bool, cuts: list[int]) -> None:
    def frame(body: bytes) -> bytes:
        if not chunked:
            return post(body)
        size = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % size

    async def play() -> list[bytes]:
        data = b"".join(frame(body) for body in bodies)
        edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
        async with served() as server, wired(server) as wire:
            for start, end in pairwise(edges):
                wire.writer.write(data[start:end])
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            answers = [await wire.answer() for _ in bodies]
            return [msgspec.json.decode(body)["body"].encode("latin-1") for _, _, body in answers]

    assert run(play()) == bodies


@settings(max_examples=60)
@given(garbage=st.one_of(st.binary(min_size=1, max_size=300), st.just(b"\x16\x03\x01\x02\x00\x01")))
def test_garbage_harms_nobody(garbage: bytes) -> None:
    async def play() -> tuple[bytes, int]:
        async with served(limits=SHORT) as server:
            async with wired(server) as wire:
                wire.writer.write(garbage)
                wire.writer.write_eof()
                with contextlib.suppress(ConnectionError):
                    got = await wire.reader.read()
            async with wired(server) as wire:
                wire.writer.write(post(b"fine"))
                return got, (await wire.answer())[0]

    answer, status = run(play())
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 200 "))
    assert status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02",
        b"GET / HTTP/9.9\r\n\r\n",
        b"FETCH / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x01b\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\nab",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_http_is_told_so_and_ended(data: bytes) -> None:
    status, got, closing = run(said(data))
    assert (status, closing) == (400, True)
    assert got["error"].startswith("This is not an HTTP/1.1 request (")


def test_a_bad_request_is_answered_after_the_good_ones_before_it() -> None:
    async def play() -> list[int]:
        async with served() as server, wired(server) as wire:
            wire.writer.write(post(b"1") + post(b"2") + b"nonsense\r\n\r\n")
            statuses = [(await wire.answer())[0] for _ in range(3)]
            assert await wire.ends()
            return statuses

    assert run(play()) == [200, 200, 400]


def test_a_body_at_the_limit_fits_and_one_above_does_not() -> None:
    limits = ServerLimits(body=1000)
    status, got, _ = run(said(post(b"x" * 1000), limits))
    assert (status, len(got["body"])) == (200, 1000)
    status, got, closing = run(said(post(b"x" * 1001), limits))
    assert (status, closing) == (413, True)
    assert got["error"] == "The body of a request may have at most 1,000 bytes."


def test_a_chunked_body_above_the_limit_is_not_read_to_its_end() -> None:
    endless = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"64\r\n" + b"x" * 100 + b"\r\n"
    status, _, closing = run(said(endless + (b"64\r\n" + b"x" * 100 + b"\r\n") * 10, ServerLimits(body=1000)))
    assert (status, closing) == (413, True)


def test_the_answer_reaches_a_client_that_still_sends_ten_megabytes() -> None:
    async def play() -> int:
        async with served(limits=ServerLimits(body=1000, linger=10)) as server, wired(server) as wire:
            wire.writer.write(post(b"x" * 10_000_000))
            await wire.writer.drain()
            return (await wire.answer())[0]

    assert run(play()) == 413


@pytest.mark.parametrize(
    "flood",
    [
        b"".join(b"X-%d: %d\r\n" % (n, n) for n in range(5000)) + b"\r\n",
        b"X: " + b"a" * 500_000,
        b"X" * 500_000,
    ],
)
def test_a_flood_of_headers_is_refused(flood: bytes) -> None:
    async def play() -> tuple[int, str]:
        async with served() as server, wired(server) as wire:
            wire.writer.write(b"GET / HTTP/1.1\r\n" + flood)
            status, _, body = await wire.answer()
            return status, msgspec.json.decode(body)["error"]

    status, error = run(play())
    assert (status, error) == (431, "The headers of a request may have at most 65,536 bytes together.")


def test_a_long_address_is_refused() -> None:
    status, _, closing = run(said(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"))
    assert (status, closing) == (414, True)


@pytest.mark.parametrize("tail", [b"0\r\nX-Trailer: ", b"5;"])
def test_an_endless_trailer_or_chunk_extension_is_refused(tail: bytes) -> None:
    async def play() -> int:
        async with served() as server, wired(server) as wire:
            wire.writer.write(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + tail)
            wire.writer.write(b"a" * 2_000_000)
            return (await wire.answer())[0]

    assert run(play()) == 431


def test_expect_100_continue() -> None:
    async def play() -> tuple[int, int, bytes]:
        async with served() as server, wired(server) as wire:
            head, body = post(b"x" * 2000, b"Expect: 100-continue").split(b"\r\n\r\n")
            wire.writer.write(head + b"\r\n\r\n")
            first = (await wire.answer())[0]
            wire.writer.write(body)
            return first, *(await wire.answer())[::2]

    first, status, answer = run(play())
    assert (first, status, len(msgspec.json.decode(answer)["body"])) == (100, 200, 2000)


def test_expect_100_continue_is_refused_before_the_body_is_sent() -> None:
    head = b"POST / HTTP/1.1\r\nContent-Length: 100000000\r\nExpect: 100-continue\r\n\r\n"
    assert run(said(head))[0] == 413


def test_continue_waits_for_the_answers_before_it() -> None:
    async def play() -> list[int]:
        async with served() as server, wired(server) as wire:
            head = post(b"x" * 10, b"Expect: 100-continue").split(b"\r\n\r\n")[0]
            wire.writer.write(post(b"1") + head + b"\r\n\r\n")
            statuses = [(await wire.answer())[0] for _ in range(2)]
            wire.writer.write(b"x" * 10)
            return [*statuses, (await wire.answer())[0]]

    assert run(play()) == [200, 100, 200]


def test_head_gets_the_head_alone() -> None:
    async def play() -> tuple[dict[str, str], int]:
        async with served() as server, wired(server) as wire:
            wire.writer.write(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n" + post(b""))
            _, headers, _ = await wire.answer(head=True)
            return headers, (await wire.answer())[0]

    headers, following = run(play())
    assert int(headers["content-length"]) > 10
    assert following == 200


@pytest.mark.parametrize(
    ("data", "closing"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", True),
        (b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\nx", False),
        (b"POST / HTTP/1.1\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\nx", True),
        (b"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", True),
    ],
)
def test_whether_a_connection_is_kept(data: bytes, closing: bool) -> None:
    assert run(said(data))[::2] == (200, closing)


@pytest.mark.parametrize("at", range(0, 12, 3))
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_behind_an_offer_of_http_2_is_read(at: int, chunked: bool) -> None:
    """As `curl --http2` sends it."""
    body = b'{"a": "body"}'
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    frame = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    head = (
        b"POST /v1?x=1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n" + frame + b"\r\n\r\n"
    )

    async def play() -> tuple[Any, int]:
        async with served() as server, wired(server) as wire:
            wire.writer.write(head + framed[:at])
            await wire.writer.drain()
            await asyncio.sleep(0.02)
            wire.writer.write(framed[at:])
            _, _, answer = await wire.answer()
            wire.writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            return msgspec.json.decode(answer), (await wire.answer())[0]

    heard, following = run(play())
    assert (heard["method"], heard["path"], heard["query"], heard["body"]) == ("POST", "/v1", "x=1", body.decode())
    assert following == 200


def test_an_exception_is_a_500_without_a_trace() -> None:
    async def broken(request: HttpRequest) -> Response:
        if request.path == "/own":
            raise ServerStartError("No place left.")
        raise KeyError("secret-free")

    async def play() -> list[tuple[int, str]]:
        async with served(broken) as server:
            client = HttpClient(server.url, limit=1)
            answers = [await client.get(path, 5) for path in ("/own", "/other", "/other")]
            await client.close()
            return [(answer.status, msgspec.json.decode(answer.body)["error"]) for answer in answers]

    own, other, again = run(play())
    assert own == (500, "The server failed on this request: No place left.")
    assert other == again == (500, "The server failed on this request: KeyError: 'secret-free'")


def test_helpers() -> None:
    request = HttpRequest("PATCH", "/x", "", {}, b"")
    refused = wrong_method(request, "GET", "POST")
    assert refused is not None
    assert (refused.status, refused.headers) == (405, (("Allow", "GET, POST"),))
    assert wrong_method(HttpRequest("HEAD", "/x", "", {}, b""), "GET") is None
    assert wrong_method(HttpRequest("HEAD", "/x", "", {}, b""), "POST") is not None
    assert msgspec.json.decode(not_found(request).body) == {"error": "There is nothing at /x."}
    assert msgspec.json.decode(error_response(400, "a\ud800b").body) == {"error": "a?b"}
