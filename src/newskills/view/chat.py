# SPDX-License-Identifier: Apache-2.0
"""A chat with a served model in the browser: one page, and a relay to the server, which may ask for a key.

The page listens on this machine alone unless told otherwise, keeps no talk, and sends answers on as they arrive.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from newskills.base.errors import ServerStartError, TransportError
from newskills.base.http.blocking import BlockingResponse, open_url

LARGEST_TALK = 4 << 20
"""Bytes of a request."""
PATIENCE_SECONDS = 600.0
"""Seconds that the model may be silent."""
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


class ChatOptions(Struct, frozen=True, kw_only=True):
    """Where the page listens, and what each request says; None: what the server does by itself."""

    host: str = "127.0.0.1"
    port: int = 7860
    system_message: str = ""
    temperature: float | None = None
    top_p: float | None = None
    tokens_to_generate: int | None = None


class ServedModel(Struct, frozen=True, kw_only=True):
    """`address`: http://host:port of the server; `key`: what it asks for, empty for nothing."""

    address: str
    name: str
    key: str = ""

    def __repr__(self) -> str:
        return f"ServedModel({self.address!r}, {self.name!r})"


@contextlib.contextmanager
def chat_page(model: ServedModel, options: ChatOptions) -> Iterator[str]:
    """Serve the page inside the `with`, at the address that is yielded. Raises ServerStartError."""
    handler = type("ChatHandler", (_Handler,), {"model": model, "options": options})
    try:
        server = ThreadingHTTPServer((options.host, options.port), handler)
    except OSError as error:
        raise ServerStartError(
            f"The chat page cannot listen at {options.host}:{options.port}: {error.strerror}.",
            hint="Use another port: --extra_chat_args='++port=7861'",
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{options.host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Conversation(Struct):
    messages: list[dict[str, Any]]


class _Handler(BaseHTTPRequestHandler):
    """GET / and /model; POST /chat with `{"messages": […]}`, answered by the server's own events."""

    model: ServedModel
    options: ChatOptions
    timeout = PATIENCE_SECONDS

    def do_GET(self) -> None:
        if not self._allowed():
            return
        if self.path == "/":
            self._answer(200, files(__package__).joinpath("chat.html").read_bytes(), "text/html; charset=utf-8")
        elif self.path == "/model":
            self._json(200, {"model": self.model.name})
        else:
            self._json(404, {"error": "There is nothing at this address."})

    def do_POST(self) -> None:
        if not self._allowed():
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/chat" or self.headers.get_content_type() != "application/json":
            self._json(404, {"error": "Send chats to /chat, as JSON."})
        elif not length.isascii() or not length.isdigit() or int(length) > LARGEST_TALK:
            self._json(413, {"error": f"A chat has {LARGEST_TALK} bytes at most."})
        else:
            self._relay(self.rfile.read(int(length)))

    def _allowed(self) -> bool:
        """Return whether the request may pass: other sites that the browser has open can reach neither the page
        nor the model."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        name = (urlsplit(f"//{host}").hostname or "").lower()
        own_names = {"localhost", "127.0.0.1", "::1", self.options.host}
        open_to_all = self.options.host in ("", "0.0.0.0", "::")  # noqa: S104 - compared
        if (open_to_all or name in own_names) and origin in (None, f"http://{host}"):
            return True
        self._json(403, {"error": "This page is for the machine that it runs on."})
        return False

    def _relay(self, body: bytes) -> None:
        try:
            messages = msgspec.json.decode(body, type=_Conversation).messages
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._json(400, {"error": "A chat is a JSON object with messages."})
            return
        address = urlsplit(self.model.address)
        try:
            if self.model.key:
                private = {"Authorization": f"Bearer {self.model.key}"}
            else:
                private = {}
            reply = open_url(
                f"http://{address.netloc}/v1/chat/completions",
                method="POST",
                headers={"Content-Type": "application/json"},
                private=private,
                body=msgspec.json.encode(self._request(messages)),
                timeout=PATIENCE_SECONDS,
                environ={},
                redirects=0,
            )
        except TransportError as error:
            self._json(502, {"error": f"The server does not answer (yet): {error}."})
            return
        with reply:
            if reply.status != 200:
                text = reply.read(2000).decode(errors="replace")
                self._json(502, {"error": f"The server answered {reply.status}: {text}"})
                return
            self._pass_on(reply)

    def _request(self, messages: list[Any]) -> dict[str, Any]:
        options = self.options
        if options.system_message:
            messages = [{"role": "system", "content": options.system_message}, *messages]
        sampling = {
            "temperature": options.temperature,
            "top_p": options.top_p,
            "max_tokens": options.tokens_to_generate,
        }
        parameters = {key: value for key, value in sampling.items() if value is not None}
        return {"model": self.model.name, "messages": messages, "stream": True, **parameters}

    def _pass_on(self, reply: BlockingResponse) -> None:
        self.close_connection = True
        self._head(200, "text/event-stream")
        self.end_headers()
        with contextlib.suppress(OSError, TransportError):  # either side may leave in mid-sentence
            while piece := reply.read_some(1 << 16):
                self.wfile.write(piece)
                self.wfile.flush()

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._answer(status, msgspec.json.encode(value), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self._head(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", CONTENT_POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, since the terminal belongs to the server's log."""
