# SPDX-License-Identifier: Apache-2.0
"""Doubles of the batch APIs: files, states, results and errors as providers send them, strict about what they get.

`Fate` says what becomes of each batch in turn; `meddle` sees every call before and after it is done, and may
cut it off.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Row = dict[str, Any]
Outcome = tuple[str, int, Any]
"""Key, status and body of a result; status 0: the state that kept the request from an answer."""


class Refused(Exception):
    """A call that the provider refuses."""

    def __init__(self, status: int, message: str, code: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


class CutOff(Exception):
    """The connection breaks: the client hears nothing."""


@dataclass
class Fate:
    """What becomes of a batch: `state` it ends in after `looks`; `alter` changes its results. `full`: it is not taken
    because too much waits; `errors` of its validation."""

    state: str = "completed"
    looks: int = 1
    answered: int | None = None
    alter: Callable[[list[Outcome]], list[Outcome]] = lambda outcomes: outcomes
    errors: list[Row] = field(default_factory=list)
    damaged: bytes = b""


@dataclass
class Batch:
    id: str
    name: str
    rows: list[tuple[str, Row]]
    fate: Fate
    endpoint: str = ""
    created: float = field(default_factory=time.time)
    looks: int = 0

    @property
    def ended(self) -> bool:
        return self.looks > self.fate.looks


def prompt_of(body: Row) -> str:
    """The last text of a request, in whichever shape."""
    texts = re.findall(r'"(?:content|text|prompt|input)": "([^"]*)"', json.dumps(body))
    return str(texts[-1])


def sum_of(body: Row) -> str:
    """The answer to "What is 3 + 1?"."""
    left, right = re.findall(r"\d+", prompt_of(body))[-2:]
    return str(int(left) + int(right))


class Provider:
    """A server of batches. `base`: what its addresses begin with; `batches` in the order of submission."""

    base = ""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.files: dict[str, bytes] = {}
        self.fates: list[Fate] = []
        self.usual = Fate()
        self.answer: Callable[[Row], tuple[int, Any]] = lambda body: (200, self.reply(sum_of(body), body))
        self.meddle: Callable[[str, str], None] = lambda moment, call: None
        self.calls: list[str] = []
        self.lock = threading.RLock()
        self.url = ""

    # What a protocol adds
    def reply(self, text: str, body: Row) -> Row:
        raise NotImplementedError

    def handle(self, method: str, path: str, query: Row, headers: Row, body: bytes) -> tuple[Any, Row]:
        raise NotImplementedError

    def refusal(self, error: Refused) -> Row:
        raise NotImplementedError

    # What all have in common
    def begin(self, kind: str, name: str, rows: list[tuple[str, Row]], endpoint: str = "") -> Batch:
        keys = [key for key, _ in rows]
        if len(set(keys)) != len(keys):
            raise Refused(400, "custom_id is not unique")
        fate = self.fates.pop(0) if self.fates else self.usual
        batch = Batch(f"{kind}{len(self.batches)}", name, rows, fate, endpoint)
        self.batches.append(batch)
        return batch

    def batch(self, name: str) -> Batch:
        batch = next((batch for batch in self.batches if batch.id == name), None)
        if batch is None:
            raise Refused(404, f"No batch found with id '{name}'.", "not_found_error")
        return batch

    def outcomes(self, batch: Batch) -> list[Outcome]:
        most = len(batch.rows) if batch.fate.answered is None else batch.fate.answered
        outcomes = [(key, *self.answer(body)) for key, body in batch.rows[:most]]
        outcomes += [(key, 0, batch.fate.state) for key, _ in batch.rows[most:]]
        return batch.fate.alter(outcomes)

    @property
    def asked(self) -> list[str]:
        """The prompts of all batches that were submitted, in order."""
        return [prompt_of(body) for batch in self.batches for _, body in batch.rows]


@contextmanager
def serving(provider: Provider) -> Iterator[Provider]:
    """The provider at `provider.url`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            call = f"{self.command} {parts.path}"
            headers = {name.lower(): value for name, value in self.headers.items()}
            more: Row = {}
            try:
                with provider.lock:
                    provider.calls.append(call)
                    provider.meddle("before", call)
                    path = parts.path.removeprefix(provider.base)
                    value, more = provider.handle(self.command, path, query, headers, body)
                    provider.meddle("after", call)
                status = 200
            except Refused as error:
                status, value = error.status, provider.refusal(error)
            except (AssertionError, LookupError, ValueError) as error:  # what it was sent is wrong
                status, value = 400, provider.refusal(Refused(400, repr(error)))
            except CutOff:
                self.close_connection = True
                self.connection.close()
                return
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **more,
            }.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
