# SPDX-License-Identifier: Apache-2.0
"""The endpoint for machines without a C compiler: the same replies (read out of endpoint.c), by asyncio or uvloop.

`python fallback.py PORT LATENCY_MS [STATUS SHARE_PERCENT [RATE]]` prints the port it listens on.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import time
from pathlib import Path
from typing import Any

_SOURCE = (Path(__file__).parent / "endpoint.c").read_text()
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"|\b(ANSWER|USAGE)\b')


def literal(name: str) -> str:
    """The value of a string constant or macro of the C source."""
    body = re.search(rf"(?:char {name}\[\] =|#define {name} )((?:[^;\n]|\\\n|\n(?=\s+\"))*)", _SOURCE)
    if body is None:
        raise LookupError(name)
    parts = []
    for text, macro in _LITERAL.findall(body[1]):
        parts.append(literal(macro) if macro else re.sub(r"\\(.)", r"\1", text))
    return "".join(parts)


ROUTES = (
    ("/chat/completions", literal("CHAT")),
    ("/completions", literal("TEXT")),
    ("/responses", literal("RESPONSES")),
    ("/models", literal("MODELS")),
    ("/health", literal("HEALTH")),
)


class Served:
    """How many POSTs have been answered, and how many refused."""

    count = refused = 0


class Refusals:
    """A share (one at random of each 20, where it is 5 %), and all above a rate: a token bucket that holds a tenth of a
    second's worth."""

    def __init__(self, status: str = "503", share: float = 0.0, rate: float = 0.0) -> None:
        self.status, self._rate = status, rate
        self._every = round(1 / share) if share else 0
        self._draw, self._drawn, self._chosen = random.Random(0), 0, -1
        self._tokens, self._refilled = rate / 10 + 1, time.monotonic()

    def __bool__(self) -> bool:
        """Whether the request at hand is refused."""
        if self._every and self._drawn % self._every == 0:
            self._chosen = self._drawn + self._draw.randrange(self._every)
        self._drawn += 1
        if self._drawn - 1 == self._chosen:
            return True
        if not self._rate:
            return False
        now = time.monotonic()
        self._tokens = min(self._rate / 10 + 1, self._tokens + (now - self._refilled) * self._rate)
        self._refilled = now
        if self._tokens < 1:
            return True
        self._tokens -= 1
        return False


class Server(asyncio.Protocol):
    """Requests of one connection, which clients send one after the other."""

    def __init__(self, latency: float, refusals: Refusals) -> None:
        self._latency, self._refusals = latency, refusals
        self._data = b""
        self._transport: Any = None  # uvloop's transports are no asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].decode("latin-1")
            length = re.search(r"(?im)^content-length:\s*(\d+)", head)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < size:
                return
            self._data = self._data[size:]
            self._route(head)

    def _route(self, head: str) -> None:
        method, path, _ = head.split(" ", 2)
        if method == "POST" and self._refusals:
            Served.refused += 1
            self._send(literal("REFUSED"), f"{self._refusals.status} Refused")
            return
        if method == "POST":
            Served.count += 1
        counts = f'{{"served":{Served.count},"refused":{Served.refused}}}'
        body = next((body for tail, body in ROUTES if path.endswith(tail)), counts)
        body = body.replace("00000000", f"{Served.count:08x}", 1)
        if method == "POST" and self._latency:
            asyncio.get_running_loop().call_later(self._latency, self._send, body)
        else:
            self._send(body)

    def _send(self, body: str, status: str = "200 OK") -> None:
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n\r\n"
        )
        self._transport.write((head + body).encode())


async def serve(port: int, latency: float, refusals: Refusals) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Server(latency, refusals), "127.0.0.1", port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    port, latency, status, share, rate = [*sys.argv[1:], *("503", "0", "0")[len(sys.argv) - 3 :]]
    run(serve(int(port), int(latency) / 1000, Refusals(status, float(share) / 100, float(rate))))


if __name__ == "__main__":
    main()
