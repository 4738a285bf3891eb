# SPDX-License-Identifier: Apache-2.0
"""The client against servers that split, drip, stall, lie and leave."""

from __future__ import annotations

import asyncio
import gc
import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.base.http._loopback import Heard, Loopback, always, loopback, response, run

from newskills.base import aio
from newskills.base.errors import (
    ConfigError,
    ConnectError,
    RedirectError,
    RequestTimeoutError,
    TransportError,
)
from newskills.base.http.client import HttpClient, split_url

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


def test_one_request_is_one_write_with_all_it_needs() -> None:
    async def work() -> None:
        async with loopback(always(response(b"{}"))) as place:
            client = HttpClient(f"{place.url}/v1/", headers=(("Authorization", "Bearer k"),))
            reply = await client.post("/chat", b'{"a":1}', 5)
            assert (reply.status, reply.body) == (200, b"{}")
            assert reply.header("content-length") == "2"
            assert reply.header("absent") is None
            await client.close()
        [heard] = place.heard
        assert heard.line == "POST /v1/chat HTTP/1.1"
        assert heard.headers["host"] == f"127.0.0.1:{place.port}"
        assert heard.headers["authorization"] == "Bearer k"
        assert heard.headers["content-type"] == "application/json"
        assert heard.body == b'{"a":1}'

    run(work())


@settings(max_examples=40)
@given(body=st.binary(max_size=300), cuts=st.lists(st.integers(1, 400), max_size=6), chunked=st.booleans())
def test_any_split_of_the_packets_gives_the_same_body(body: bytes, cuts: list[int], chunked: bool) -> None:
    whole = response(body)
    if chunked:
        pieces = [body[i : i + 7] for i in range(0, len(body), 7)]
        framed = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces)
        whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"

    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        while await place.hear(reader) is not None:
            last = 0
            for cut in sorted(set(cuts)):
                writer.write(whole[last:cut])
                await writer.drain()
                await asyncio.sleep(0)
                last = cut
            writer.write(whole[last:])

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            assert (await client.post("/", b"", 5)).body == body
            assert (await client.get("/", 5)).body == body
            await client.close()
            assert place.connections == 1

    run(work())


def test_connections_are_kept_and_shared() -> None:
    async def work() -> None:
        async with loopback(always(response(b"x"))) as place:
            client = HttpClient(place.url, limit=3)
            await asyncio.gather(*(client.post("/", b"", 5) for _ in range(50)))
            assert place.connections == 3
            assert len(place.heard) == 50
            await client.close()

    run(work())


def test_a_thousand_at_once() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        while (heard := await place.hear(reader)) is not None:
            await asyncio.sleep(0.05)
            writer.write(response(heard.body))

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url, limit=400)
            replies = await asyncio.gather(*(client.post("/", b"%d" % i, 30) for i in range(1000)))
            assert [int(reply.body) for reply in replies] == list(range(1000))
            assert place.connections == 400
            await client.close()

    run(work())


def test_a_drip_is_read_to_its_end() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        await place.hear(reader)
        for byte in response(b"slow"):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.001)

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            assert (await client.post("/", b"", 5)).body == b"slow"
            await client.close()

    run(work())


def test_the_time_out_covers_the_whole_reply() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        await place.hear(reader)
        while True:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" if not writer.is_closing() else b"")
            await asyncio.sleep(5)

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            with pytest.raises(RequestTimeoutError, match=r"no complete reply within 0\.1 s"):
                await client.post("/", b"", 0.1)
            await client.close()

    run(work())


@pytest.mark.parametrize("part", [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"HTTP/1.1 20"])
@pytest.mark.parametrize("reset", [True, False])
def test_half_a_reply_is_an_error_and_not_tried_again(part: bytes, reset: bool) -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        if place.connections == 1:
            await place.hear(reader)
            writer.write(response(b"whole"))
            await place.hear(reader)
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.05)
        if reset:
            writer.transport.abort()

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            assert (await client.post("/", b"", 5)).body == b"whole"
            with pytest.raises(TransportError, match="in the middle"):
                await client.post("/", b"", 5)
            assert len(place.heard) == 2
            await client.close()

    run(work())


def test_a_stale_connection_is_replaced_once() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        await place.hear(reader)
        writer.write(response(b"first" if place.connections == 1 else b"second"))
        await place.hear(reader)

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url, limit=1)
            assert (await client.post("/", b"", 5)).body == b"first"
            assert (await client.post("/", b"", 5)).body == b"second"
            assert place.connections == 2
            await client.close()

    run(work())


def test_a_fresh_connection_that_is_closed_without_a_word_is_an_error() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        await place.hear(reader)

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            with pytest.raises(TransportError, match="without a reply"):
                await client.post("/", b"", 5)
            assert place.connections == 1
            await client.close()

    run(work())


def test_a_connection_that_the_server_ends_is_not_used_again() -> None:
    async def work() -> None:
        async with loopback(always(response(b"x", headers="Connection: close\r\n"))) as place:
            client = HttpClient(place.url)
            for _ in range(3):
                assert (await client.post("/", b"", 5)).body == b"x"
            assert place.connections == 3
            await client.close()

    run(work())


def test_a_body_that_ends_with_the_connection_is_whole() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        await place.hear(reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nold style")

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            assert (await client.post("/", b"", 5)).body == b"old style"
            await client.close()

    run(work())


def test_what_comes_unasked_spoils_only_its_connection() -> None:
    async def work() -> None:
        async with loopback(always(response(b"a") + response(b"surplus"))) as place:
            client = HttpClient(place.url)
            for _ in range(2):
                assert (await client.post("/", b"", 5)).body == b"a"
            assert place.connections == 2
            await client.close()

    run(work())


def test_interim_responses_are_passed_over() -> None:
    async def work() -> None:
        interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        async with loopback(always(interim + response(b"final"))) as place:
            client = HttpClient(place.url)
            reply = await client.post("/", b"", 5)
            assert reply.body == b"final"
            assert reply.header("link") is None
            await client.close()

    run(work())


def test_bodies_over_the_limit_are_refused() -> None:
    async def work() -> None:
        async with loopback(always(response(b"x" * 3_000_000))) as place:
            client = HttpClient(place.url)
            client.max_body = 1_000_000
            with pytest.raises(TransportError, match="larger than the limit"):
                await client.post("/", b"", 5)
            await client.close()

    run(work())


def test_large_bodies_pass_both_ways() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        heard = await place.hear(reader)
        assert heard is not None
        writer.write(response(heard.body))
        await writer.drain()

    async def work() -> None:
        body = bytes(range(256)) * 40_000
        async with loopback(play) as place:
            client = HttpClient(place.url)
            assert (await client.post("/", body, 20)).body == body
            await client.close()

    run(work())


@pytest.mark.parametrize("junk", [b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
def test_what_is_no_http_is_said_so(junk: bytes) -> None:
    async def work() -> None:
        async with loopback(always(junk)) as place:
            client = HttpClient(place.url)
            with pytest.raises(TransportError, match="not send an HTTP"):
                await client.post("/", b"", 5)
            await client.close()

    run(work())


def test_gzip_that_nobody_asked_for() -> None:
    packed = gzip.compress(b"plain" * 100)
    header = "Content-Encoding: gzip\r\n"

    async def work() -> None:
        async with loopback(
            always(response(packed, headers=header), response(packed[:-9], headers=header))
        ) as place:
            client = HttpClient(place.url)
            assert (await client.post("/", b"", 5)).body == b"plain" * 100
            with pytest.raises(TransportError, match="gzip"):
                await client.post("/", b"", 5)
            assert "accept-encoding" not in place.heard[0].headers
            await client.close()

    run(work())


def test_redirects_are_refused_by_name() -> None:
    async def work() -> None:
        moved = response(b"", "301 Moved", "Location: https://elsewhere/v1\r\n")
        async with loopback(always(moved)) as place:
            client = HttpClient(place.url)
            with pytest.raises(RedirectError, match="https://elsewhere/v1"):
                await client.post("/", b"", 5)
            await client.close()

    run(work())


def test_nobody_listens() -> None:
    async def work() -> None:
        async with loopback(always(b"")) as place:
            pass
        client = HttpClient(place.url)
        for _ in range(3):
            with pytest.raises(TransportError, match="Cannot connect to http://127"):
                await client.post("/", b"", 5)

    run(work())


def test_unknown_host() -> None:
    async def work() -> None:
        with pytest.raises(ConnectError, match="host name is not known"):
            await HttpClient("http://no-such-host.invalid").post("/", b"", 5)

    run(work())


def test_many_failed_look_ups_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """With uvloop where it is installed, whose own look-ups outlive the connections they were for."""

    async def work() -> None:
        client = HttpClient("http://no-such-host.invalid", connect_timeout=0.001)
        for _ in range(2):
            asking = [asyncio.ensure_future(client.post("/", b"", 5)) for _ in range(512)]
            await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            for task in asking:
                task.cancel()
            failures = await asyncio.gather(*asking, return_exceptions=True)
            assert any(isinstance(failure, ConnectError) for failure in failures)
        await asyncio.sleep(0.2)
        await client.close()
        gc.collect()

    aio.run(work)
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_cancelled_request_gives_its_place_back() -> None:
    heard_slow = asyncio.Event()

    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        while (heard := await place.hear(reader)) is not None:
            if heard.body == b"slow":
                heard_slow.set()
                await asyncio.sleep(30)
            writer.write(response(b"ok"))

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url, limit=1)
            slow = asyncio.create_task(client.post("/", b"slow", 30))
            waiting = asyncio.create_task(client.post("/", b"", 30))
            given_up = asyncio.create_task(client.post("/", b"", 30))
            await heard_slow.wait()
            given_up.cancel()
            slow.cancel()
            assert (await waiting).body == b"ok"
            assert (await client.post("/", b"", 5)).body == b"ok"
            assert place.connections == 2
            await client.close()

    run(work())


def test_closing_fails_what_is_under_way() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        await place.hear(reader)
        await asyncio.sleep(30)

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            task = asyncio.create_task(client.post("/", b"", 30))
            await asyncio.sleep(0.05)
            await client.close()
            with pytest.raises(TransportError):
                await task

    run(work())


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host/v1", "not a base URL"),
        ("127.0.0.1:5000", "not a base URL"),
        ("http://host:99999", "port"),
        ("http://user:secret@host", "user name or password"),
        ("http://ho st/v1", "blank"),
    ],
)
def test_addresses_that_are_none(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        split_url(url)
    assert "secret" not in str(caught.value)


def test_ipv6_and_default_ports() -> None:
    assert split_url("https://[::1]/v1/") == ("https", "::1", 443, "/v1")
    assert split_url("http://Host:80") == ("http", "host", 80, "")


def test_a_key_with_a_line_break_is_refused() -> None:
    client = HttpClient("http://127.0.0.1:1", headers=(("Authorization", "Bearer a\r\nX: y"),))
    with pytest.raises(ConfigError, match="Authorization"):
        run(client.post("/", b"", 1))


def test_other_methods_send_a_body_only_where_there_is_one() -> None:
    async def play() -> list[Heard]:
        async with loopback(always(response(b"{}"))) as server:
            client = HttpClient(server.url)
            await client.request("DELETE", "/sessions/a", 5)
            await client.request("PUT", "/sessions/a", 5, body=b"[1]", headers=(("X-Session-ID", "a"),))
            await client.close()
            return server.heard

    gone, put = run(play())
    assert gone.line == "DELETE /sessions/a HTTP/1.1"
    assert "content-length" not in gone.headers
    assert (put.body, put.headers["x-session-id"]) == (b"[1]", "a")
