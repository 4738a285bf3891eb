# SPDX-License-Identifier: Apache-2.0
"""The endpoint for machines without a C compiler: the same replies (read out of endpoint.c), by asyncio or uvloop.

`python fallback.py PORT LATENCY_MS` prints the port it listens on.
"""

from __future__ import annotations

import asyncio
import re
import sys
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
    """How many POSTs have been answered."""

    count = 0


class Server(asyncio.Protocol):
    """Requests of one connection, which clients send one after the other."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
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
        if method == "POST":
            Served.count += 1
        body = next((body for tail, body in ROUTES if path.endswith(tail)), f'{{"served":{Served.count}}}')
        if method == "POST" and self._latency:
            asyncio.get_running_loop().call_later(self._latency, self._send, body)
        else:
            self._send(body)

    def _send(self, body: str) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n\r\n"
        self._transport.write((head + body).encode())


async def serve(port: int, latency: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Server(latency), "127.0.0.1", port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    run(serve(int(sys.argv[1]), int(sys.argv[2]) / 1000))


if __name__ == "__main__":
    main()
