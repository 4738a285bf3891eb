# SPDX-License-Identifier: Apache-2.0
"""The OpenAI wire: streams and the responses endpoint."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.base.http._loopback import always, events, replies, run
from tests.models._openai_wire import CHAT, QUESTION, ask, chat, choice

from newskills.base.callbacks import REPLY_LISTENER
from newskills.base.errors import (
    HttpError,
    RateLimitError,
    ServerError,
    TransportError,
)
from newskills.base.records import Inference, Message, ReplyPiece, Request, Row, Usage
from newskills.models.decode import StopGuard, earliest_stop


def delta(**fields: Any) -> Row:
    return {"model": "m-1", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def test_a_streamed_chat_is_put_together() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"x"'}}
    logprobs = {"content": [{"token": "he", "logprob": -1.0}]}
    first = delta(role="assistant", content="he")
    first["choices"][0]["logprobs"] = logprobs
    last = delta()
    last["choices"][0]["finish_reason"] = "stop"
    stream = events(
        delta(reasoning="think"),
        delta(reasoning="ing"),
        first,
        delta(content="llo"),
        delta(tool_calls=[call]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}]),
        last,
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    )
    reply, heard = run(ask(always(stream), chat(stream=True)))
    assert heard.json["stream"] is True
    assert heard.json["stream_options"] == {"include_usage": True}
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("hello", "thinking", "stop")
    assert reply.tool_calls == [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}]
    assert reply.usage == Usage(input_tokens=3, output_tokens=4)
    assert reply.logprobs is not None
    assert reply.logprobs.tokens == ["he"]


def test_thoughts_that_come_as_parts_of_the_content() -> None:
    """Mistral's models stream lists of parts while they think, then texts; keep-alive events have no data."""
    thoughts = [
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": word}]}])
        for word in ("hm, ", "four")
    ]
    answer = (delta(content=[{"type": "text", "text": "It is "}]), delta(content="4."))
    stream = events(*thoughts, b"", *answer, b"\r", b"[DONE] ", done=False)
    reply, _ = run(ask(always(stream), chat(stream=True)))
    assert (reply.text, reply.reasoning) == ("It is 4.", "hm, four")


def test_whole_calls_without_an_index_are_told_apart() -> None:
    def named(identity: str) -> Row:
        return {"id": identity, "function": {"name": "f", "arguments": "{}"}}

    pieces = [delta(tool_calls=[named("a")]), delta(tool_calls=[named("b")])]
    pieces.append(delta(tool_calls=[{"function": {"arguments": " "}}]))
    pieces[-1]["choices"][0]["finish_reason"] = "tool_calls"
    reply, _ = run(ask(always(events(*pieces)), chat(stream=True)))
    assert reply.tool_calls is not None
    found = [(call["id"], call["function"]["arguments"]) for call in reply.tool_calls]
    assert found == [("a", "{}"), ("b", "{} ")]


def test_a_streamed_text_is_put_together() -> None:
    pieces = [choice(text="a", index=0), choice(text="b", index=0, finish_reason="length", stop_reason=None)]
    request = Request(prompt="p", inference=Inference(endpoint_type="text", tokens_to_generate=2, stream=True))
    reply, _ = run(ask(always(events(*pieces)), request))
    assert (reply.text, reply.finish_reason) == ("ab", "length")


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        (events(delta(content="half"), done=False), TransportError),
        (events(done=False), TransportError),
        (events(delta(content="half"), {"error": {"message": "died", "code": 503}}), ServerError),
        (events(delta(content="half"), {"error": {"message": "slow", "code": 429}}), RateLimitError),
        (events(b"{oops"), ServerError),
    ],
)
def test_streams_that_end_badly_are_no_answers(stream: bytes, kind: type[HttpError]) -> None:
    with pytest.raises(kind):
        run(ask(always(stream), chat(stream=True)))


RESPONSE = {
    "model": "m-1",
    "status": "completed",
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "four"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 3, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 6}},
}


def test_the_responses_endpoint() -> None:
    messages = [
        *QUESTION,
        Message(
            role="assistant", content="hm", tool_calls=[{"id": "c0", "function": {"name": "f", "arguments": "{}"}}]
        ),
        Message(role="tool", content="result", tool_call_id="c0"),
        Message(
            role="user",
            content=[{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:x"}}],
        ),
    ]
    request = Request(
        messages=messages,
        inference=Inference(endpoint_type="responses", tokens_to_generate=9, reasoning_effort="low"),
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
    )
    reply, heard = run(ask(replies(RESPONSE), request, "openai", model="o3"))
    assert heard.path == "/v1/responses"
    body = heard.json
    assert body["input"][:2] == [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "2+2?"}]
    assert body["input"][3] == {"type": "function_call", "call_id": "c0", "name": "f", "arguments": "{}"}
    assert body["input"][4] == {"type": "function_call_output", "call_id": "c0", "output": "result"}
    assert body["input"][5]["content"][1] == {"type": "input_image", "image_url": "data:x"}
    assert body["tools"] == [{"type": "function", "strict": False, "name": "f", "parameters": {"type": "object"}}]
    assert body["text"] == {"format": {"type": "json_schema", "name": "n", "schema": {}}}
    assert (body["max_output_tokens"], body["reasoning"], body["store"]) == (9, {"effort": "low"}, False)
    assert "seed" not in body
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("four", "think", "tool_calls")
    assert reply.usage == Usage(input_tokens=3, output_tokens=9, reasoning_tokens=6)
    assert reply.tool_calls == [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


def test_responses_that_are_cut_or_fail() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    reply, _ = run(ask(replies(cut), chat(endpoint="responses")))
    assert (reply.text, reply.finish_reason) == ("", "length")
    for bad in ({"status": "completed", "output": []}, {"status": "failed", "error": {"message": "x"}}, {}):
        with pytest.raises(ServerError):
            run(ask(replies(bad), chat(endpoint="responses")))


def test_a_response_cut_at_the_limit_is_no_finished_one() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "half"}]}
    answer = {"status": "completed", "output": [message], "usage": {"output_tokens": 9}}
    reply, _ = run(ask(replies(answer), chat(endpoint="responses", tokens_to_generate=9), "llamacpp"))
    assert reply.finish_reason == "length"
    reply, _ = run(ask(replies(answer), chat(endpoint="responses", tokens_to_generate=10), "llamacpp"))
    assert reply.finish_reason == "stop"


def test_streamed_responses() -> None:
    stream = events({"type": "response.output_text.delta"}, {"type": "response.completed", "response": RESPONSE})
    reply, heard = run(ask(always(stream), chat(endpoint="responses", stream=True)))
    assert "stream_options" not in heard.json
    assert reply.text == "four"
    with pytest.raises(TransportError):
        run(ask(always(events({"type": "response.created"})), chat(endpoint="responses", stream=True)))
    with pytest.raises(ServerError, match="boom"):
        run(ask(always(events({"type": "error", "message": "boom"})), chat(endpoint="responses", stream=True)))


class Parts:
    """A listener that keeps what it hears."""

    begun = False

    def __init__(self) -> None:
        self.heard: list[ReplyPiece] = []

    def hear(self, piece: ReplyPiece) -> None:
        self.begun = True
        self.heard.append(piece)

    def __enter__(self) -> Parts:
        self._token = REPLY_LISTENER.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        REPLY_LISTENER.reset(self._token)


def test_who_listens_gets_the_parts_of_a_reply_that_is_asked_for_as_a_stream() -> None:
    last = delta(content="lo")
    last["choices"][0]["finish_reason"] = "stop"
    request = chat()
    with Parts() as parts:
        reply, heard = run(ask(always(events(delta(content="hel"), last)), request))
    assert (reply.text, [piece.text for piece in parts.heard]) == ("hello", ["hel", "lo"])
    assert heard.json["stream"] is True
    assert not request.inference.stream


def test_a_backend_without_streams_is_asked_for_the_whole() -> None:
    with Parts() as parts:
        reply, heard = run(ask(replies(CHAT), chat(), "megatron"))
    assert (reply.text, parts.heard) == ("hello", [])
    assert "stream" not in heard.json


@given(st.text("abST", max_size=30), st.lists(st.text("abST", min_size=1, max_size=4), max_size=3), st.data())
@settings(max_examples=100, deadline=None)
def test_nothing_behind_a_stop_phrase_is_told(text: str, phrases: list[str], data: st.DataObject) -> None:
    heard: list[ReplyPiece] = []
    guard = StopGuard(heard.append, phrases)
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        guard(ReplyPiece(text=rest[:size]))
        rest = rest[size:]
    told = "".join(piece.text for piece in heard)
    whole = earliest_stop(text, phrases)
    assert whole.startswith(told)
    assert len(whole) - len(told) < max(map(len, phrases), default=1)
