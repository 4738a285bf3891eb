# SPDX-License-Identifier: Apache-2.0
"""The server over real sockets: clients that leave, drip or stall, and its end."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tests.base.http._loopback import run
from tests.base.http._wire import SHORT, echo, post, served, wired

from newskills.base import aio
from newskills.base.errors import ConfigError, ServerStartError
from newskills.base.http.client import HttpClient
from newskills.base.http.messages import (
    HttpRequest,
    Response,
)
from newskills.base.http.server import ServerLimits, serve


class Work:
    """A handler that never ends, and what became of it."""

    def __init__(self) -> None:
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: HttpRequest) -> Response:
        self.begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return Response()


@pytest.mark.parametrize("manner", ["close", "half", "reset"])
def test_a_client_that_leaves_cancels_its_work(manner: str) -> None:
    async def play() -> None:
        work = Work()
        async with served(work) as server:
            async with wired(server) as wire:
                wire.writer.write(post(b"x"))
                await work.begun.wait()
                if manner == "half":
                    wire.writer.write_eof()
                elif manner == "reset":
                    wire.writer.transport.abort()
                else:
                    wire.writer.close()
                await asyncio.wait_for(work.cancelled.wait(), 60)
            assert all(connection.task is None for connection in server.connections)

    run(play())


def test_a_client_that_leaves_in_the_middle_of_its_body() -> None:
    async def play() -> int:
        async with served() as server:
            for cut in (10, 60, 90):
                async with wired(server) as wire:
                    wire.writer.write(post(b"x" * 50)[:cut])
            async with wired(server) as wire:
                wire.writer.write(post(b"x"))
                return (await wire.answer())[0]

    assert run(play()) == 200


@pytest.mark.parametrize(
    "sent", [b"G", b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"]
)
def test_a_request_that_never_ends_is_timed_out(sent: bytes) -> None:
    async def play() -> tuple[int, bool]:
        async with served(limits=SHORT) as server, wired(server) as wire:
            wire.writer.write(sent)
            return (await wire.answer())[0], await wire.ends()

    assert run(play()) == (408, True)


def test_a_request_that_drips_is_timed_out() -> None:
    async def play() -> int:
        async with served(limits=SHORT) as server, wired(server) as wire:

            async def drip() -> None:
                for _ in range(200):
                    wire.writer.write(b"X-A: b\r\n")
                    await asyncio.sleep(0.02)

            wire.writer.write(b"GET / HTTP/1.1\r\n")
            task = asyncio.create_task(drip())
            status = (await wire.answer())[0]
            task.cancel()
            return status

    assert run(play()) == 408


def test_work_may_take_longer_than_a_request_may_take_to_arrive() -> None:
    async def slow(request: HttpRequest) -> Response:
        await asyncio.sleep(0.8)
        return Response()

    async def play() -> int:
        async with served(slow, SHORT) as server, wired(server) as wire:
            wire.writer.write(post(b"x"))
            return (await wire.answer())[0]

    assert run(play()) == 200


def test_an_idle_connection_is_closed_without_a_word() -> None:
    async def play() -> bool:
        async with served(limits=SHORT) as server, wired(server) as wire:
            wire.writer.write(post(b"x"))
            await wire.answer()
            return await wire.ends()

    assert run(play())


def test_a_client_that_takes_no_answers_is_cut_off() -> None:
    async def large(request: HttpRequest) -> Response:
        return Response(body=b"x" * 8_000_000)

    async def play() -> None:
        async with served(large, SHORT) as server:
            sock = socket.create_connection(("127.0.0.1", server.port))
            sock.sendall(post(b"x") * 3)
            for _ in range(100):
                await asyncio.sleep(0.05)
                if not server.connections:
                    break
            sock.close()
            assert not server.connections

    run(play())


def test_a_slow_client_gets_the_whole_of_a_large_last_answer() -> None:
    async def large(request: HttpRequest) -> Response:
        return Response(body=b"x" * 8_000_000)

    async def play() -> int:
        limits = ServerLimits(linger=0.1, receive=20)
        async with served(large, limits) as server, wired(server) as wire:
            wire.writer.write(post(b"x", b"Connection: close"))
            await asyncio.sleep(0.6)
            return len((await wire.answer())[2])

    assert run(play()) == 8_000_000


def test_too_many_connections_are_told_so() -> None:
    async def play() -> tuple[int, int]:
        async with served(limits=ServerLimits(connections=2)) as server:
            async with wired(server), wired(server):
                await asyncio.sleep(0.05)
                async with wired(server) as third:
                    refused = (await third.answer())[0]
            await asyncio.sleep(0.05)
            async with wired(server) as wire:
                wire.writer.write(post(b"x"))
                return refused, (await wire.answer())[0]

    assert run(play()) == (503, 200)


def test_a_stop_waits_for_requests_in_work_and_takes_no_more() -> None:
    gate = asyncio.Event()

    async def gated(request: HttpRequest) -> Response:
        await gate.wait()
        return Response(body=b"done")

    async def play() -> None:
        server = await serve(gated)
        async with wired(server) as busy, wired(server) as idle:
            busy.writer.write(post(b"x"))
            await asyncio.sleep(0.05)
            stop = asyncio.create_task(server.close(10))
            assert await idle.ends()
            with pytest.raises(ConnectionError):
                await asyncio.open_connection("127.0.0.1", server.port)
            gate.set()
            _, headers, body = await busy.answer()
            assert (headers["connection"], body) == ("close", b"done")
            busy.writer.close()
            await stop

    run(play())


def test_a_stop_cancels_what_outlives_its_grace() -> None:
    async def play() -> None:
        work = Work()
        server = await serve(work)
        async with wired(server) as wire:
            wire.writer.write(post(b"x"))
            await work.begun.wait()
            await server.close(0.05)
            assert work.cancelled.is_set()
            assert await wire.ends()

    run(play())


def test_a_taken_port_is_named() -> None:
    async def play() -> str:
        async with served() as server:
            with pytest.raises(ServerStartError) as caught:
                await serve(echo, port=server.port)
            assert str(server.port) in caught.value.message
            return caught.value.message

    assert "another program listens there" in run(play())


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 65536), ("127.0.0.1", -1), ("no.such.host.invalid", 0)])
def test_an_impossible_address_is_refused(host: str, port: int) -> None:
    with pytest.raises(ConfigError):
        run(serve(echo, host, port))


def test_the_name_localhost_and_uvloop() -> None:
    pytest.importorskip("uvloop")

    async def play() -> tuple[str, int]:
        server = await serve(echo, "localhost", limits=SHORT)
        client = HttpClient(server.url)
        answer = await client.post("/", b"x", 5)
        refused = await client.post("/", b"x" * 200_000, 5)
        await client.close()
        await server.close()
        assert refused.status == 413
        return server.host, answer.status

    assert aio.run(play) == ("127.0.0.1", 200)
