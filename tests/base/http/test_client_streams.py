# SPDX-License-Identifier: Apache-2.0
"""The client reading server-sent events."""

from __future__ import annotations

import asyncio

import pytest
from tests.base.http._loopback import Loopback, always, events, loopback, run

from newskills.base.errors import (
    TransportError,
)
from newskills.base.http.client import HttpClient

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


def test_server_sent_events() -> None:
    stream = b": comment\r\nevent: x\r\ndata: one\r\n\r\ndata:two\ndata: more\n\n\n\ndata: last"

    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        while await place.hear(reader) is not None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(stream))
            for byte in stream:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0)

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            for _ in range(2):
                async with client.stream("/", b"", 5) as reply:
                    assert reply.status == 200
                    assert [event async for event in reply.events()] == [b"one", b"two\nmore", b"last"]
            assert place.connections == 1
            await client.close()

    run(work())


def test_a_stream_that_is_left_early_closes_its_connection() -> None:
    async def work() -> None:
        async with loopback(always(events(*({"n": i} for i in range(1000))))) as place:
            client = HttpClient(place.url)
            async with client.stream("/", b"", 5) as reply:
                async for _ in reply.events():
                    break
            assert (await client.post("/", b"", 5)).status == 200
            await client.close()

    run(work())


def test_a_stream_that_breaks_is_an_error() -> None:
    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        await place.hear(reader)
        writer.write(events({"n": 1})[:-10])
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async def work() -> None:
        async with loopback(play) as place:
            client = HttpClient(place.url)
            with pytest.raises(TransportError, match="in the middle"):
                async with client.stream("/", b"", 5) as reply:
                    _ = [event async for event in reply.events()]
            await client.close()

    run(work())


def test_a_stream_longer_than_its_buffer_is_read_at_the_readers_pace() -> None:
    async def work() -> None:
        big = [{"n": i, "pad": "x" * 50_000} for i in range(100)]
        async with loopback(always(events(*big))) as place:
            client = HttpClient(place.url)
            async with client.stream("/", b"", 20) as reply:
                await asyncio.sleep(0.1)
                seen = 0
                async for _ in reply.events():
                    seen += 1
            assert seen == 101
            await client.close()

    run(work())
