# SPDX-License-Identifier: Apache-2.0
"""Streams whose events are noted with the time at which they came."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.base.http._loopback import Loopback, events, loopback, run

from newskills.base.http.client import HttpClient
from newskills.base.http.connection import EVENT_WATCH, STREAM_BUFFER

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_an_event_is_noted_when_it_came_and_not_when_it_is_read() -> None:
    written: list[float] = []

    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        await place.hear(reader)
        writer.write(HEAD)
        for text in (b"one", b"two", b"three"):
            # a half event is none yet
            writer.write(chunk(b"data: "))
            await asyncio.sleep(0.03)
            written.append(time.perf_counter())
            writer.write(chunk(text + b"\n\n"))
            # the loop reads what has come before it runs timers that are due
            await asyncio.sleep(0.03)
        written.append(time.perf_counter())
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def work() -> None:
        noted: list[tuple[float, bytes]] = []
        async with loopback(play) as place:
            client = HttpClient(place.url)
            watching = EVENT_WATCH.set(lambda came, event: noted.append((came, event)))
            async with client.stream("/", b"", 5) as reply:
                assert [event async for event in reply.events()] == [b"one", b"two", b"three"]
            EVENT_WATCH.reset(watching)
            await client.close()
        assert [event for _, event in noted] == [b"one", b"two", b"three"]
        for (came, _), before, after in zip(noted, written, written[1:], strict=False):
            assert before <= came <= after

    run(work())


@pytest.mark.parametrize("size", [100, STREAM_BUFFER // 4])
def test_a_long_watched_stream_is_read_to_its_end(size: int) -> None:
    values = [{"n": n, "text": "x" * size} for n in range(40)]

    async def play(place: Loopback, reader: Reader, writer: Writer) -> None:
        while await place.hear(reader) is not None:
            writer.write(events(*values))
            await writer.drain()

    async def work() -> None:
        noted: list[bytes] = []
        async with loopback(play) as place:
            client = HttpClient(place.url)
            EVENT_WATCH.set(lambda came, event: noted.append(event))
            for _ in range(2):
                async with client.stream("/", b"", 30) as reply:
                    read = [event async for event in reply.events()]
            await client.close()
        assert len(read) == 41
        assert noted == read * 2

    run(work())
