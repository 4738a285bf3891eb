# SPDX-License-Identifier: Apache-2.0
"""Answers that are sent in chunks, and servers at unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.base.http._wire import served

from newskills.base.errors import ServerStartError
from newskills.base.http.messages import ChunkedResponse, HttpRequest, Response
from newskills.base.http.server import serve_at

GET = b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n"


class Streams:
    """Three chunks, one of them empty; /broken fails after the first, /slow waits for ever after it."""

    def __init__(self) -> None:
        self.closed = 0

    async def answer(self, request: HttpRequest) -> Response | ChunkedResponse:
        if request.path == "/odd":
            return Response(529, b"busy")
        return ChunkedResponse(self._chunks(request.path), headers=(("X-More", "1"),))

    async def _chunks(self, path: str) -> AsyncGenerator[bytes, None]:
        try:
            yield b"one"
            if path == "/broken":
                raise ValueError("no more")
            if path == "/slow":
                await asyncio.Event().wait()
            yield b""
            yield b"two" * 10
        finally:
            self.closed += 1


async def _talk(port: int, *paths: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(GET % path for path in paths))
    writer.write(b"GET /odd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    text = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return text


def test_chunks_of_several_answers_on_one_connection() -> None:
    async def main() -> None:
        streams = Streams()
        async with served(streams.answer) as server:
            text = await _talk(server.port, b"a", b"b")
        whole = b"3\r\none\r\n1e\r\n" + b"two" * 10 + b"\r\n0\r\n\r\n"
        assert text.count(b"Transfer-Encoding: chunked\r\nX-More: 1\r\n\r\n" + whole) == 2
        assert b"HTTP/1.1 529 Error\r\n" in text
        assert text.endswith(b"busy")
        assert streams.closed == 2

    asyncio.run(main())


def test_an_answer_that_fails_ends_without_its_last_chunk() -> None:
    async def main() -> None:
        streams = Streams()
        async with served(streams.answer) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(GET % b"broken")
            text = b""
            with contextlib.suppress(ConnectionError):
                while piece := await asyncio.wait_for(reader.read(1000), 60):
                    text += piece
            writer.close()
            assert not text.endswith(b"0\r\n\r\n")
        assert streams.closed == 1

    asyncio.run(main())


def test_a_client_that_leaves_closes_the_stream() -> None:
    async def main() -> None:
        streams = Streams()
        async with served(streams.answer) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(GET % b"slow")
            await reader.readuntil(b"3\r\none\r\n")
            writer.close()
            while not streams.closed:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_unix_socket_replaces_one_that_is_dead(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "s.sock"
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(path))
        dead.close()
        server = await serve_at(Streams().answer, path)
        with pytest.raises(ServerStartError, match="Cannot listen"):
            await serve_at(Streams().answer, path)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(GET % b"a")
        assert b"two" in await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 60)
        writer.close()
        await server.close(1.0)

    asyncio.run(main())
