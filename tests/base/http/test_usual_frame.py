# SPDX-License-Identifier: Apache-2.0
"""What the client cuts out of the bytes by itself is what the parser makes of them; all else is left to the parser."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from newskills.base.http.connection import Headers, HttpResponse, usual_frame

MOST = 1000
LINES = (
    *("Content-Length: 5", "content-length:12", "CONTENT-LENGTH: \t7 ", "Content-Length: 0", "Content-Length: +5"),
    *("Content-Length: 1_0", "Content-Length: 2000", "Content-Length: 999999999999999999", "Content-Length : 5"),
    *("Connection : close", "Connection\t: close"),
    *("Transfer-Encoding: chunked", "transfer-encoding: identity", "X-Content-Length: 9"),
    *("Connection: close", "Connection: keep-alive", "connection: Keep-Alive, Close", "Proxy-Connection: close"),
    *("Content-Type: application/json", "Date: Fri, 27 Nov 2026 10:00:00 GMT", "X-Empty:", "X: a:b: c"),
)


class Parsed:
    """What httptools makes of the same bytes."""

    def __init__(self, data: bytes) -> None:
        self.headers: Headers = []
        self.body, self.complete, self.keeps = b"", False, False
        self.parser = httptools.HttpResponseParser(self)
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, chunk: bytes) -> None:
        self.body += chunk

    def on_message_complete(self) -> None:
        self.complete, self.keeps = True, self.parser.should_keep_alive()


@given(
    status=st.sampled_from(
        ["HTTP/1.1 200 OK", "HTTP/1.1 200 ", "HTTP/1.0 200 OK", "HTTP/1.1 204 No", "http/1.1 200 OK"]
    ),
    lines=st.lists(st.sampled_from(LINES), max_size=5),
)
@example(status="HTTP/1.1 200 OK", lines=["X-Empty:", "Content-Length: 5", "Connection: keep-alive"])
@example(status="HTTP/1.1 200 OK", lines=["Content-Length: 5", "Content-Length : 5"])
@example(status="HTTP/1.1 200 OK", lines=["Connection\t: close", "Content-Length: 5"])
def test_it_is_what_the_parser_makes_of_them(status: str, lines: list[str]) -> None:
    head = "".join(f"{line}\r\n" for line in [status, *lines]).encode() + b"\r\n"
    frame = usual_frame(head + b"b" * 30, MOST)
    if frame is None:
        return
    at, length = frame
    parsed = Parsed(head + b"b" * length)
    assert (at, parsed.complete, parsed.keeps, parsed.body) == (len(head), True, True, b"b" * length)
    own = HttpResponse(parsed.parser.get_status_code(), head, b"")
    assert (own.status, own.headers) == (200, [(name, value.rstrip()) for name, value in parsed.headers])


@pytest.mark.parametrize(
    ("line", "usual"),
    [
        ("Content-Length: 5", True),
        ("Content-Length: 5\r\nConnection: keep-alive", True),
        ("Content-Length: 5\r\nContent-Length: 5", False),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", False),
        ("Content-Length: 5\r\nConnection: close", False),
        (f"Content-Length: {MOST + 1}", False),
        ("X: Content-Length: 5", False),
    ],
)
def test_which_heads_are_usual(line: str, usual: bool) -> None:
    assert (usual_frame(f"HTTP/1.1 200 OK\r\n{line}\r\n\r\n".encode(), MOST) is not None) is usual
    assert usual_frame(f"HTTP/1.1 200 OK\r\n{line}\r\n\r".encode(), MOST) is None
