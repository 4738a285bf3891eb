# SPDX-License-Identifier: Apache-2.0
"""Servers and proxies that send a reply twice: no request ever gets the reply to another."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from tests.base.http._loopback import Loopback, always, loopback, response, run

from newskills.base.http import connection
from newskills.base.http.client import HttpClient


class RepeatingServer:
    """A server of threads that answers each request with its own body; every third reply is sent twice."""

    def __init__(self, delay: float) -> None:
        self.requests = 0
        self._delay = delay
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as lines:
            while lines.readline():
                length = 0
                while (line := lines.readline()) != b"\r\n":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                body = lines.read(length)
                self.requests += 1
                time.sleep(0.002)
                reply = response(body)
                connection.sendall(reply)
                if int(body) % 3 == 0:
                    time.sleep(self._delay)
                    connection.sendall(reply)


@contextlib.contextmanager
def repeating(delay: float) -> Iterator[RepeatingServer]:
    server = RepeatingServer(delay)
    try:
        yield server
    finally:
        server.close()


@pytest.mark.parametrize("delay", [0.0, 0.0005, 0.002, 0.01])
def test_a_reply_that_comes_twice_answers_no_other_request(delay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REPEAT_WAIT_SECONDS", 50.0)  # a busy machine may be late

    async def work(url: str) -> list[bytes]:
        client = HttpClient(url, limit=8)
        replies = await asyncio.gather(*(client.post("/", b"%d" % number, 60) for number in range(150)))
        await client.close()
        return [reply.body for reply in replies]

    with repeating(delay) as server:
        assert run(work(server.url)) == [b"%d" % number for number in range(150)]


def test_equal_replies_of_an_honest_server_are_held_once_and_asked_for_once() -> None:
    async def work() -> None:
        async with loopback(always(response(b"the same"))) as place:
            client = HttpClient(place.url, limit=1)
            for _ in range(30):
                assert (await client.post("/", b"", 60)).body == b"the same"
            assert (len(place.heard), place.connections) == (30, 1)
            await client.close()

    run(work())


def test_an_equal_reply_is_held_for_two_replies_where_many_show_how_long_one_takes() -> None:
    guard = connection.RepeatGuard()
    holds = []
    for _ in range(20):
        guard.record(30.0)
        holds.append(guard.hold_seconds() - connection.REPEAT_WAIT_SECONDS)
    assert holds[0] == 600.0
    assert holds == sorted(holds, reverse=True)
    assert set(holds[9:]) == {60.0}


def test_bytes_that_wait_on_a_kept_connection_end_it() -> None:
    writers: list[asyncio.StreamWriter] = []

    async def play(place: Loopback, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while await place.hear(reader) is not None:
            writer.write(response(b"asked"))

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url, limit=1)
            assert (await client.post("/", b"", 60)).body == b"asked"
            writers[0].write(response(b"unasked"))  # sent at once, and read by nobody before the next request
            assert (await client.post("/", b"", 60)).body == b"asked"
            assert (len(place.heard), place.connections) == (2, 2)
            await client.close()

    run(work())


def test_a_repeated_reply_and_the_true_one_in_one_piece() -> None:
    async def play(place: Loopback, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await place.hear(reader)
        writer.write(response(b"first"))
        await place.hear(reader)
        writer.write(response(b"first") + response(b"second"))

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url, limit=1)
            assert (await client.post("/", b"", 60)).body == b"first"
            assert (await client.post("/", b"", 60)).body == b"second"
            await client.close()

    run(work())


def test_a_repeated_reply_before_the_end_of_a_connection_is_not_believed() -> None:
    async def play(place: Loopback, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await place.hear(reader)
        writer.write(response(b"first" if place.connections == 1 else b"second"))
        await place.hear(reader)
        writer.write(response(b"first"))
        await writer.drain()
        writer.close()

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url, limit=1)
            assert (await client.post("/", b"", 60)).body == b"first"
            assert (await client.post("/", b"", 60)).body == b"second"
            await client.close()

    run(work())
