# SPDX-License-Identifier: Apache-2.0
"""A small file server on loopback that can cut, delay, refuse and redirect, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Headers = dict[str, str]


class Web(ThreadingHTTPServer):
    """`files` by path; `plan` by path: what happens to the next requests, in order ("cut", "reset", "500", …)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.plan: dict[str, list[str]] = {}
        self.redirects: dict[str, str] = {}
        self.asked: list[tuple[str, Headers]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"

    def ranges(self) -> list[str]:
        return [headers.get("range", "") for _, headers in self.asked]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the game."""


class _Handler(BaseHTTPRequestHandler):
    server: Web
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((path, headers))
        steps = self.server.plan.get(path, [])
        step = steps.pop(0) if steps else ""
        if step.isdigit():
            self._empty(int(step), {"Retry-After": "0"} if step == "429" else {})
        elif path in self.server.redirects:
            self._empty(302, {"Location": self.server.redirects[path]})
        elif path not in self.server.files:
            self._empty(404, {})
        else:
            self._file(self.server.files[path], headers, step)

    def _empty(self, status: int, headers: Headers) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _file(self, body: bytes, headers: Headers, step: str) -> None:
        tag = f'"{hash(body) & 0xFFFFFF:x}"'
        start = 0
        if headers.get("range", "").startswith("bytes=") and headers.get("if-range") == tag:
            start = int(headers["range"][6:].rstrip("-"))
        if start and start >= len(body):
            self._empty(416, {})
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        rest = body[start:]
        self.wfile.write(rest[: len(rest) // 2] if step == "cut" else rest)
        if step == "cut":
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextlib.contextmanager
def serving() -> Iterator[Web]:
    with Web() as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield web
        finally:
            web.shutdown()
            thread.join()


def archive(files: dict[str, bytes], top: str = "r-0123") -> bytes:
    """A repository as its host packs it, with a link among its files that nobody should follow."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in reversed(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo(f"{top}/data/z/task.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return packed.getvalue()
