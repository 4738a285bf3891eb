# SPDX-License-Identifier: Apache-2.0
"""A chat endpoint that streams at known times: `python -m bench.load_double PORT_FILE [SLOTS]`.

A request waits 150–400 ms for its first token and 8–25 ms for each further one, drawn from the first word of its
prompt; where all SLOTS are taken, it waits for one before. Tokens are sent at absolute times, so that no delay adds up.
GET /times gives the seconds after which the tokens of each request were written.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec

from newskills.base import aio
from newskills.base.http.messages import ChunkedResponse, HttpRequest, Response, json_response, not_found
from newskills.base.http.server import serve


class Double:
    def __init__(self, slots: int) -> None:
        self._slots = asyncio.Semaphore(slots)
        self.times: list[list[float]] = []

    async def answer(self, request: HttpRequest) -> Response | ChunkedResponse:
        came = time.perf_counter()
        if request.path == "/times":
            return json_response(self.times)
        if request.path.endswith("/models"):
            return json_response({"data": [{"id": "double", "root": "double"}]})
        if not request.path.endswith("/chat/completions"):
            return not_found(request)
        return ChunkedResponse(self._events(msgspec.json.decode(request.body), came))

    async def _events(self, body: dict[str, Any], came: float) -> AsyncGenerator[bytes, None]:
        content = body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        draw = random.Random(text.partition(" ")[0])
        count = body.get("max_tokens") or body.get("max_completion_tokens") or 16
        prompt = len(msgspec.json.encode(body["messages"])) // 4
        sent: list[float] = []
        self.times.append(sent)
        async with self._slots:
            due = time.perf_counter() + draw.uniform(0.15, 0.4)
            yield event({"role": "assistant", "content": ""})
            for _ in range(count):
                await asyncio.sleep(due - time.perf_counter())
                sent.append(time.perf_counter() - came)
                yield event({"content": " token"})
                due += draw.uniform(0.008, 0.025)
        yield event({}, "length")
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        yield b"data: %b\n\ndata: [DONE]\n\n" % msgspec.json.encode({**ENVELOPE, "choices": [], "usage": usage})


ENVELOPE = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "double"}


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """A server-sent event, as large as those of vLLM."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "token_ids": None}
    return b"data: %b\n\n" % msgspec.json.encode({**ENVELOPE, "choices": [choice]})


async def main(port_file: Path, slots: int) -> None:
    server = await serve(Double(slots).answer)
    port_file.write_text(str(server.port))
    await asyncio.Event().wait()


if __name__ == "__main__":
    aio.run(lambda: main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000))
