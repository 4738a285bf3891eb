# SPDX-License-Identifier: Apache-2.0
"""Clients that do nothing but ask: `python clients.py KIND PORT REQUESTS CONNECTIONS` prints requests per second.

raw        asyncio protocols that send prepared bytes and count reply bytes: what the event loop can do at most
aiohttp    the usual client of this field, body decoded
newskills  newskills.base.http.client, body decoded
pipelined  many requests in one write, for what the endpoint itself can do
Imports nothing of the bench, so that any virtual environment can run it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

Worker = Callable[[Iterator[int]], Awaitable[None]]
PROMPT = "Each of the 6 boxes holds 7 apples. How many apples are there in all? " * 4
BODY = json.dumps(
    {
        "model": "fake",
        "messages": [{"role": "user", "content": PROMPT}],
        "temperature": 0.7,
        "top_p": 0.95,
        "max_tokens": 2048,
        "seed": 0,
    }
).encode()
PATH = "/v1/chat/completions"


def request_bytes(port: int) -> bytes:
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY


class Raw(asyncio.Protocol):
    """Sends the next request as soon as a reply of the known size is complete."""

    left = 0

    def __init__(self, request: bytes, size: int, done: asyncio.Event) -> None:
        self._request, self._size, self._done = request, size, done
        self._missing = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def start(self) -> None:
        assert self._transport is not None
        if Raw.left <= 0:
            self._done.set()
            return
        Raw.left -= 1
        self._missing = self._size
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._missing -= len(data)
        if not self._missing:
            # On the next turn of the loop: writes in one go wake the other side less often, which is faster.
            asyncio.get_running_loop().call_soon(self.start)


async def raw(port: int, requests: int, connections: int) -> float:
    request, size = request_bytes(port), await reply_size(port)
    loop, events, protocols = asyncio.get_running_loop(), [], []
    for _ in range(connections):
        events.append(asyncio.Event())
        made = await loop.create_connection(lambda: Raw(request, size, events[-1]), "127.0.0.1", port)
        protocols.append(made[1])
    Raw.left, start = requests, time.perf_counter()
    for protocol in protocols:
        protocol.start()
    for event in events:
        await event.wait()
    return requests / (time.perf_counter() - start)


async def reply_size(port: int) -> int:
    """Bytes of one reply with its head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_bytes(port))
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split()[0])
    await reader.readexactly(length)
    writer.close()
    return len(head) + length


async def pipelined(port: int, requests: int, connections: int) -> float:
    size, batch = await reply_size(port), 64
    several = request_bytes(port) * batch

    async def one(rounds: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        for _ in range(rounds):
            writer.write(several)
            await reader.readexactly(size * batch)
        writer.close()

    rounds = -(-requests // (batch * connections))
    start = time.perf_counter()
    await asyncio.gather(*(one(rounds) for _ in range(connections)))
    return rounds * batch * connections / (time.perf_counter() - start)


async def by_aiohttp(port: int, requests: int, connections: int) -> float:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:

        async def worker(left: Iterator[int]) -> None:
            for _ in left:
                headers = {"Content-Type": "application/json"}
                async with session.post(f"http://127.0.0.1:{port}{PATH}", data=BODY, headers=headers) as reply:
                    json.loads(await reply.read())

        return await connected_rate(worker, requests, connections)


async def by_newskills(port: int, requests: int, connections: int) -> float:
    import msgspec

    from newskills.base.http.client import HttpClient

    client = HttpClient(f"http://127.0.0.1:{port}/v1", limit=connections)

    async def worker(left: Iterator[int]) -> None:
        for _ in left:
            msgspec.json.decode((await client.post("/chat/completions", BODY, 60.0)).body)

    rate = await connected_rate(worker, requests, connections)
    await client.close()
    return rate


async def connected_rate(worker: Worker, requests: int, connections: int) -> float:
    """Requests per second of so many workers once all connections stand."""
    await asyncio.gather(*(worker(iter(range(1))) for _ in range(connections)))
    left, start = iter(range(requests)), time.perf_counter()
    await asyncio.gather(*(worker(left) for _ in range(connections)))
    return requests / (time.perf_counter() - start)


CLIENTS = {"raw": raw, "pipelined": pipelined, "aiohttp": by_aiohttp, "newskills": by_newskills}

if __name__ == "__main__":
    kind, *numbers = sys.argv[1:]
    print(asyncio.run(CLIENTS[kind](*map(int, numbers))))
