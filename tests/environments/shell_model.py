# SPDX-License-Identifier: Apache-2.0
"""A scripted endpoint for agents that are programs: it calls the shell tool that they offer, or writes text."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.environments.tasks import texts_of

SHELLS = {
    "Bash": "command",
    "Shell": "command",
    "exec_command": "cmd",
    "bash": "command",
    "run_shell_command": "command",
}
"""Shell tools of programs → the argument that takes the command line."""
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
Turn = str | Callable[[str], str]
"""A command line, or what makes one of all that was said so far."""


class ShellModel:
    """`turns`: commands, one after the other; `edits`: texts for programs that offer no tools. `bodies`: what came."""

    def __init__(self, *turns: Turn, edits: tuple[Turn, ...] = (), endless: bool = False) -> None:
        self.turns, self.edits, self.endless = turns, edits, endless
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    def message(self, body: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request."""
        names = [tool["function"]["name"] for tool in body.get("tools") or ()]
        shell = next((name for name in names if name in SHELLS), None)
        messages = body["messages"]
        if shell is None:
            text = self._turn(self.edits, len(self.bodies) - 1, body)  # their prompts hold replies as examples
            return {"role": "assistant", "content": text or "Done."}
        turn = sum(bool(message.get("tool_calls")) for message in messages)
        line = self._turn(self.turns, turn, body)
        if line is None:
            return {"role": "assistant", "content": "All is done."}
        arguments: dict[str, Any] = {SHELLS[shell]: line}
        if shell == "Bash":
            arguments["description"] = "a step"
        elif shell == "run_shell_command":
            arguments |= {"description": "a step", "is_background": False}
        function = {"name": shell, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{len(self.bodies)}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _turn(self, turns: tuple[Turn, ...], number: int, body: dict[str, Any]) -> str | None:
        if not turns or (number >= len(turns) and not self.endless):
            return None
        turn = turns[min(number, len(turns) - 1)]
        return turn if isinstance(turn, str) else turn(texts_of(body))


@contextmanager
def serving(model: ShellModel) -> Iterator[ShellModel]:
    """Yield the model behind an address of this machine, which speaks OpenAI's chat."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "fake", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.bodies.append(body)
            message = model.message(body)
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            if body.get("stream"):
                self._stream(message, reason)
                return
            self._send(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "fake",
                    "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                    "usage": USAGE,
                }
            )

        def _stream(self, message: dict[str, Any], reason: str) -> None:
            calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls") or ())]
            delta = {**message, **({"tool_calls": calls} if calls else {})}
            base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
            chunks = (
                {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
                {**base, "choices": [], "usage": USAGE},
            )
            text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
            self._bytes(text.encode(), "text/event-stream")

        def _send(self, value: dict[str, Any]) -> None:
            self._bytes(json.dumps(value).encode(), "application/json")

        def _bytes(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
