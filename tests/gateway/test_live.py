# SPDX-License-Identifier: Apache-2.0
"""Replies that programs get while the model writes them: real clients, a real server that waits in the middle."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import types
from tests.gateway.scripted import LEFT, UNSET, running

from newskills.base.records import Request, Row
from newskills.gateway.recording import LOG, LogRecorder, read_log
from newskills.gateway.routes import NamedTasks
from newskills.gateway.tasks import Backend, GatewayTask
from newskills.models.config import ServerConfig
from newskills.run.gateway_server.model import LastingEndpoint

USER: list[Any] = [{"role": "user", "content": "go"}]
TOOLS: list[Any] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    return sent({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def sent(value: Row) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


USED = sent({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}})
FIRST = [chunk(role="assistant", content=""), chunk(reasoning_content="Hm."), chunk(content="Let me ")]
CALL = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at": '}}
REST = [
    chunk(content="look."),
    chunk(tool_calls=[CALL]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": '"x"}'}}]),
    chunk("tool_calls"),
    USED,
    b"data: [DONE]\n\n",
]
WHOLE = {
    "model": "m",
    "usage": {"prompt_tokens": 11, "completion_tokens": 7},
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "content": "Let me look.",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
                ],
            },
        }
    ],
}


class Server:
    """Sends `first`, waits until the program has it, and sends `rest`; a stream without a rest breaks off. `refusals`:
    so many requests get 500 before."""

    def __init__(self, first: list[bytes], rest: list[bytes] | None, refusals: int = 0) -> None:
        self.first, self.rest, self.refusals = first, rest, refusals
        self.go, self.waited = threading.Event(), True
        self.bodies: list[Any] = []

    @property
    def questions(self) -> int:
        """Requests that were no probes."""
        return sum(body.get("max_tokens") != 1 for body in self.bodies)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.bodies.append(json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))
        if len(self.bodies) <= self.refusals:
            handler.send_error(500)
            return
        stream = bool(self.bodies[-1].get("stream"))
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream" if stream and self.first else "application/json")
        handler.end_headers()
        if not stream or not self.first:
            handler.wfile.write(json.dumps(WHOLE).encode())
            return
        handler.wfile.write(b"".join(self.first))
        handler.wfile.flush()
        self.waited = self.go.wait(20)
        handler.wfile.write(b"".join(self.rest or ()))


@contextmanager
def before(server: Server, *, live: bool = True, folder: Path | None = None, kind: str = "vllm") -> Iterator[str]:
    """A gateway before `server`, recorded in `folder`; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    backend = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    config = ServerConfig(server_type=kind, model="m", base_url=f"http://127.0.0.1:{backend.server_port}/v1")
    model = LastingEndpoint(config, 4, {"ANTHROPIC_API_KEY": "k"}, say=lambda _: None)
    recorder = LogRecorder(folder) if folder is not None else None
    request = Request(inference=UNSET)
    with running(model, recorder=recorder) as served:
        tasks = NamedTasks(
            "",
            lambda name: GatewayTask(
                model=model, request=request, name=name, forced=LEFT, live=live, backend=Backend(blocks=True)
            ),
        )
        served.gateway._tasks = tasks
        yield f"{served.url}/t1"
        served.call(model.close())
    backend.shutdown()
    backend.server_close()


def chat(url: str, go: Any, **more: Any) -> Row:
    seen: Row = {"text": "", "thought": "", "arguments": ""}
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0, timeout=60) as client:
        for part in client.chat.completions.create(
            model="m", messages=USER, tools=TOOLS, stream=True, stream_options={"include_usage": True}, **more
        ):
            for choice in part.choices:
                seen["text"] += choice.delta.content or ""
                seen["thought"] += getattr(choice.delta, "reasoning_content", None) or ""
                for call in choice.delta.tool_calls or ():
                    seen["arguments"] += call.function.arguments or ""
                seen["end"] = choice.finish_reason or seen.get("end")
            if part.usage is not None:
                seen["used"] = (part.usage.prompt_tokens, part.usage.completion_tokens)
                details = part.usage.prompt_tokens_details
                seen |= {"cached": details.cached_tokens} if details is not None else {}
            go(seen["text"])
    return seen


def responses(url: str, go: Any) -> Row:
    seen: Row = {"text": "", "thought": "", "arguments": ""}
    flat = [{**TOOLS[0]["function"], "type": "function"}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0, timeout=60) as client:
        for part in client.responses.create(model="m", input=USER, tools=flat, stream=True):
            if part.type == "response.output_text.delta":
                seen["text"] += part.delta
            elif part.type == "response.reasoning_text.delta":
                seen["thought"] += part.delta
            elif part.type == "response.function_call_arguments.delta":
                seen["arguments"] += part.delta
            elif part.type == "response.failed":
                raise openai.APIError(part.response.error.message, request=httpx.Request("POST", url), body=None)
            elif part.type == "response.completed":
                seen["end"], used = "tool_calls", part.response.usage
                seen["used"] = (used.input_tokens, used.output_tokens)
                assert [item.type for item in part.response.output] == ["reasoning", "message", "function_call"]
            go(seen["text"])
    return seen


def messages(url: str, go: Any) -> Row:
    seen: Row = {"text": "", "thought": "", "arguments": ""}
    tools: list[Any] = [{"name": "look", "input_schema": {"type": "object"}}]
    with (
        anthropic.Anthropic(base_url=url, api_key="x", max_retries=0, timeout=60) as client,
        client.messages.stream(model="m", max_tokens=99, messages=USER, tools=tools) as stream,
    ):
        for part in stream:
            if part.type == "text":
                seen["text"] += part.text
            elif part.type == "thinking":
                seen["thought"] += part.thinking
            elif part.type == "input_json":
                seen["arguments"] += part.partial_json
            go(seen["text"])
        final = stream.get_final_message()
    seen["end"] = {"tool_use": "tool_calls"}[final.stop_reason or ""]
    seen["used"] = (final.usage.input_tokens, final.usage.output_tokens)
    assert [block.type for block in final.content] == ["thinking", "text", "tool_use"]
    return seen


def gemini(url: str, go: Any) -> Row:
    seen: Row = {"text": "", "thought": "", "arguments": ""}
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=url, timeout=60_000))
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="look")])
    config = types.GenerateContentConfig(tools=[tool], automatic_function_calling={"disable": True})
    for part in client.models.generate_content_stream(model="m", contents="go", config=config):
        content = part.candidates[0].content if part.candidates else None
        for piece in (content.parts if content is not None else None) or ():
            seen["thought" if piece.thought else "text"] += piece.text or ""
            if piece.function_call is not None:
                seen["arguments"] += json.dumps(piece.function_call.args)
        if part.candidates and part.candidates[0].finish_reason:
            seen["end"] = "tool_calls"
        used = part.usage_metadata
        seen["used"] = (used.prompt_token_count, used.candidates_token_count)
        go(seen["text"])
    return seen


CLIENTS = [chat, responses, messages, gemini]
FAILURES = (openai.APIError, anthropic.APIError, genai.errors.APIError)


@pytest.mark.parametrize("client", CLIENTS)
def test_programs_see_tokens_while_the_model_writes(client: Any, tmp_path: Path) -> None:
    """The server sends its rest only when the program has shown that it has the beginning."""
    server = Server(FIRST, REST)
    with before(server, folder=tmp_path) as url:
        seen = client(url, lambda text: server.go.set() if text == "Let me " else None)
    assert server.waited
    assert seen == {
        "text": "Let me look.",
        "thought": "Hm.",
        "arguments": '{"at": "x"}',
        "end": "tool_calls",
        "used": (11, 7),
    }
    assert server.bodies[0]["stream"] is True
    [exchange] = read_log(tmp_path / LOG).exchanges
    assert (exchange.usage, exchange.notes, exchange.error) == ({"input_tokens": 11, "output_tokens": 7}, [], {})


def test_a_record_of_parts_equals_that_of_a_whole(tmp_path: Path) -> None:
    lines: list[list[Row]] = []
    for live in (True, False):
        server, folder = Server(FIRST, REST), tmp_path / str(live)
        folder.mkdir()
        server.go.set()
        with before(server, live=live, folder=folder) as url:
            chat(url, lambda text: None)
        assert bool(server.bodies[0].get("stream")) is live
        rows = [json.loads(line) for line in (folder / LOG).read_text().splitlines()]
        lines.append([{name: row[name] for name in row if name not in ("began", "seconds")} for row in rows])
    assert lines[0] == lines[1]
    assert len(lines[0]) == 4


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_that_breaks_off_ends_the_program_s_too(client: Any, tmp_path: Path) -> None:
    server = Server(FIRST, None)
    with before(server, folder=tmp_path) as url, pytest.raises(FAILURES, match="not asked for again"):
        client(url, lambda text: server.go.set() if text == "Let me " else None)
    assert server.waited
    assert server.questions == 1
    assert not any(body.get("stream") for body in server.bodies[1:])  # probes, whose replies are for nobody
    [exchange] = read_log(tmp_path / LOG).exchanges
    assert "in the middle of the reply. The reply had begun" in exchange.error["message"]
    assert exchange.reply == ""


def test_an_error_of_the_server_in_the_middle(tmp_path: Path) -> None:
    server = Server(FIRST, [sent({"error": {"message": "out of memory", "code": 500}})])
    with before(server, folder=tmp_path) as url, pytest.raises(anthropic.APIError, match="out of memory"):
        messages(url, lambda text: server.go.set() if text == "Let me " else None)
    assert server.questions == 1


def test_failures_before_the_first_token_are_tried_again() -> None:
    server = Server(FIRST, REST, refusals=1)
    server.go.set()
    with before(server) as url:
        assert chat(url, lambda text: None)["text"] == "Let me look."
    assert len(server.bodies) > 1


def test_a_server_that_knows_no_streams_is_read_whole() -> None:
    server = Server([], None)
    with before(server) as url:
        seen = chat(url, lambda text: None)
    assert (seen["text"], seen["arguments"]) == ("Let me look.", '{"at": "x"}')
    assert server.questions == 1


def test_a_program_that_goes_away_ends_the_request(tmp_path: Path) -> None:
    server = Server(FIRST, REST)
    with before(server, folder=tmp_path) as url:
        body = {"model": "m", "messages": USER, "stream": True}
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=30) as answer:
            assert b"Let me" in next(part for part in answer.iter_bytes() if b"Let me" in part)
        ended = time.monotonic() + 20
        while not (log := read_log(tmp_path / LOG)).exchanges and time.monotonic() < ended:
            time.sleep(0.05)
        server.go.set()
    assert log.exchanges[0].error["status"] == 499


THOUGHT = [
    {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s1"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "d"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Yes"}},
]
ENDED = [
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]


def test_signatures_of_thinking_are_passed_on_as_they_come() -> None:
    server = Server([sent(row) for row in THOUGHT], [sent(row) for row in ENDED])
    with (
        before(server, kind="anthropic") as url,
        anthropic.Anthropic(base_url=url, api_key="x", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=USER) as stream,
    ):
        for part in stream:
            if part.type == "text":
                server.go.set()
        final = stream.get_final_message()
    assert server.waited
    assert [block.model_dump(exclude_none=True) for block in final.content[:2]] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d"},
    ]
    assert (final.usage.input_tokens, final.usage.output_tokens) == (5, 3)


def test_cache_marks_reach_anthropic_and_its_counts_come_back(tmp_path: Path) -> None:
    """By the official client to a backend of its protocol; any protocol tells what came from the cache."""
    ephemeral: Any = {"type": "ephemeral"}
    hour: Any = {"type": "ephemeral", "ttl": "1h"}
    used = {
        "input_tokens": 5,
        "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 20,
        "output_tokens": 1,
    }
    begun = {"type": "message_start", "message": {"model": "m", "usage": used}}
    server = Server([sent(begun)], [sent(row) for row in [*THOUGHT[1:], *ENDED]])
    server.go.set()
    with before(server, kind="anthropic", folder=tmp_path) as url:
        with anthropic.Anthropic(base_url=url, api_key="x", max_retries=0) as client:
            turns: list[Any] = [
                {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": hour}, text("b")]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c", "content": "r", "cache_control": ephemeral}
                    ],
                },
            ]
            with client.messages.stream(
                model="m",
                max_tokens=9,
                system=[text("Fixed."), {**text("Kept."), "cache_control": ephemeral}, text("Today.")],
                messages=turns,
                tools=[{"name": "look", "input_schema": {"type": "object"}, "cache_control": ephemeral}],
            ) as stream:
                counts = stream.get_final_message().usage
        chatted = chat(url, lambda text: None, max_tokens=9)
        google = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=url, timeout=60_000))
        config = types.GenerateContentConfig(max_output_tokens=9)
        [*_, last] = google.models.generate_content_stream(model="m", contents="go", config=config)
        told = last.usage_metadata
    assert (counts.input_tokens, counts.cache_read_input_tokens, counts.cache_creation_input_tokens) == (5, 70, 20)
    assert chatted["used"] == (95, 3)
    assert chatted["cached"] == 70
    assert told is not None
    assert (told.prompt_token_count, told.cached_content_token_count) == (95, 70)
    body = server.bodies[0]
    assert body["system"] == [
        {**text("Fixed.\n\nKept."), "cache_control": ephemeral},
        text("\n\nToday."),
    ]
    assert body["tools"][0]["cache_control"] == ephemeral
    assert body["messages"][0]["content"] == [{**text("a"), "cache_control": hour}, text("\n\nb")]
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c", "content": [text("r")], "cache_control": ephemeral}
    ]
    assert "cache_control" not in (tmp_path / LOG).read_text()


def text(words: str) -> Any:
    return {"type": "text", "text": words}
