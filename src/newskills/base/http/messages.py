# SPDX-License-Identifier: Apache-2.0
"""What a server's handler gets and gives back, and the answers that every API needs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

JSON = "application/json"
_STATUSES = frozenset(HTTPStatus)


class HttpRequest(Struct, frozen=True):
    """One whole request. `path` and `query` as sent (not decoded); names of headers in lower case, values as
    latin-1, several of one name joined by a comma."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


class Response(Struct, frozen=True):
    """One whole answer; the server adds the length and, where it ends the connection, says so."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Sequence[tuple[str, str]] = ()


class ChunkedResponse(Struct, frozen=True, eq=False):
    """An answer whose length nobody knows yet, sent in chunks as they come; the server closes `chunks` in any case."""

    chunks: AsyncGenerator[bytes, None]
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Sequence[tuple[str, str]] = ()


Handler = Callable[[HttpRequest], Awaitable[Response | ChunkedResponse]]
"""Answers one request."""
LAST_CHUNK = b"0\r\n\r\n"


def json_response(value: Any, status: int = 200) -> Response:
    """Return `value` as a JSON response. Raises UnicodeEncodeError for a lone surrogate, which JSON in UTF-8 cannot
    hold."""
    return Response(status, msgspec.json.encode(value))


def error_response(status: int, sentence: str, headers: Sequence[tuple[str, str]] = ()) -> Response:
    """Make the response `{"error": sentence}`."""
    body = msgspec.json.encode({"error": sentence.encode("utf-8", "replace").decode()})
    return Response(status, body, headers=headers)


def not_found(request: HttpRequest) -> Response:
    return error_response(404, f"There is nothing at {request.path[:200]}.")


def wrong_method(request: HttpRequest, *allowed: str) -> Response | None:
    """Return the answer 405 unless the method is one of `allowed`, else None; where GET is allowed, HEAD is too."""
    if request.method in allowed or (request.method == "HEAD" and "GET" in allowed):
        return None
    sentence = f"{request.path[:200]} accepts {' or '.join(allowed)}, not {request.method}."
    return error_response(405, sentence, (("Allow", ", ".join(allowed)),))


def encode_response(response: Response, *, close: bool, bodiless: bool) -> bytes:
    """Return the bytes on the wire; `bodiless` for the answer to HEAD."""
    head = b"%bContent-Length: %d\r\n" % (
        _response_head(response.status, response.content_type),
        len(response.body),
    )
    for name, value in response.headers:
        head += f"{name}: {value}\r\n".encode("latin-1")
    if close:
        head += b"Connection: close\r\n"
    if bodiless:
        return b"%b\r\n" % head
    return b"%b\r\n%b" % (head, response.body)


def encode_head(response: ChunkedResponse, *, close: bool) -> bytes:
    """Return the bytes on the wire before the first chunk."""
    head = _response_head(response.status, response.content_type) + b"Transfer-Encoding: chunked\r\n"
    for name, value in response.headers:
        head += f"{name}: {value}\r\n".encode("latin-1")
    if close:
        head += b"Connection: close\r\n"
    return head + b"\r\n"


def encode_chunk(data: bytes) -> bytes:
    """Return one chunk; `data` must not be empty, which would end the answer."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@cache
def _response_head(status: int, content_type: str) -> bytes:
    # services use codes that no standard has, such as 529
    phrase = HTTPStatus(status).phrase if status in _STATUSES else "Error"
    return f"HTTP/1.1 {status} {phrase}\r\nContent-Type: {content_type}\r\n".encode("latin-1")
