# SPDX-License-Identifier: Apache-2.0
"""A resources server as NeMo Gym's `example_session_state_mgmt` is one: a counter for each session, told apart by a
cookie. Rows may ask it to fail: `mask`, `status` or `reward` are what it answers /verify with."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = [
    {"type": "function", "name": name, "strict": True, "parameters": {"type": "object", "properties": fields}}
    for name, fields in (("increment_counter", {"count": {"type": "integer"}}), ("get_counter_value", {}))
]
"""Gym refuses tools without `strict`."""


class CounterServer(ThreadingHTTPServer):
    """`dies_after`: answers after which it answers nobody any more."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int = 0, dies_after: float = float("inf")) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.dies_after, self.answers = dies_after, 0
        self.counters: dict[str, int] = {}
        self.verified: list[dict[str, Any]] = []
        self.names = (f"session-{number}" for number in itertools.count())
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: CounterServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.answers += 1
            if self.server.answers > self.server.dies_after:
                self.close_connection = True
                return
            cookie = self.headers.get("Cookie") or ""
            session = cookie.partition("session=")[2].partition(";")[0] or next(self.server.names)
            status, answer = self._answer(session, body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Set-Cookie", f"session={session}; path=/; httponly")
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, session: str, body: dict[str, Any]) -> tuple[int, Any]:
        counters = self.server.counters
        if self.path == "/seed_session":
            counters[session] = body["initial_count"]
            return 200, {}
        if self.path == "/increment_counter":
            counters[session] += body["count"]
            return 200, {"success": True}
        if self.path == "/get_counter_value":
            return 200, {"count": counters[session]}
        if self.path == "/aggregate_metrics":
            responses = body["verify_responses"]
            rewards = [response["reward"] for response in responses]
            tasks = {response["_ng_task_index"] for response in responses}
            keys = {"mean/reward": sum(rewards) / len(rewards), "tasks": len(tasks)}
            return 200, {"agent_metrics": {**keys, "seen": sorted(responses[0])}, "key_metrics": keys}
        if self.path != "/verify":
            return 404, {"detail": "Not Found"}
        self.server.verified.append(body)
        verdict = {"reward": float(counters[session] == body["expected_count"]), "mask_sample": False}
        return body.get("status", 200), {**body, **verdict, **body.get("answer", {})}

    def log_message(self, *words: Any) -> None: ...


@contextmanager
def counter_server(port: int = 0, dies_after: float = float("inf")) -> Iterator[CounterServer]:
    server = CounterServer(port, dies_after)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def counter_row(number: int, **fields: Any) -> dict[str, Any]:
    """A task in Gym's form: the counter begins at `number`, and 5 is to be added."""
    asked = {"input": [{"role": "user", "content": f"From {number}: add 2, add 3."}], "tools": TOOLS}
    return {
        "responses_create_params": asked,
        "initial_count": number,
        "expected_count": number + 5,
        **fields,
    }
