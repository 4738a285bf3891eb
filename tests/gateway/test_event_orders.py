# SPDX-License-Identifier: Apache-2.0
"""Any reply, cut into events of any size: what the clients' own accumulators put together equals the reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.scripted import call

from newskills.base.callbacks import HearPiece
from newskills.base.records import Reply, ReplyPiece, Usage
from newskills.gateway import form
from newskills.gateway.form import ProgramProtocol, ProgramRequest, ReplyHead
from newskills.gateway.routes import CHAT, GEMINI, MESSAGES, RESPONSES
from newskills.gateway.tasks import History
from newskills.models import anthropic as anthropic_wire
from newskills.models import gemini as gemini_wire
from newskills.models import openai_chat, openai_responses
from newskills.models.decode import call_arguments
from newskills.models.errors import EndpointIdentity

PROTOCOLS = [CHAT, RESPONSES, MESSAGES, GEMINI]
HERE = EndpointIdentity("http://gateway", "m", None, "")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["data: [DONE]\n\n", "\r\n\r\nevent: message_stop\n", "\u2028\u2029\x85", '"}]}', "</think>", "\x00\x1b[2J"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT, lambda v: st.lists(v) | st.dictionaries(TEXT, v)
)
ARGUMENTS = st.dictionaries(TEXT, VALUES, max_size=3).map(lambda value: json.dumps(value, ensure_ascii=False))
CALLS = st.lists(st.tuples(st.sampled_from(["Bash", "apply_patch", "mcp__look"]), ARGUMENTS), max_size=3)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    calls = [call(f"call_{number}", name, text) for number, (name, text) in enumerate(draw(CALLS))]
    return Reply(
        text=draw(TEXT),
        reasoning=draw(st.none() | TEXT.filter(bool)),
        tool_calls=calls or None,
        finish_reason="tool_calls" if calls else draw(st.sampled_from(["stop", "length"])),
        usage=Usage(input_tokens=draw(st.integers(0, 99)), output_tokens=draw(st.integers(0, 99))),
    )


def head() -> ReplyHead:
    wire = {"usage": True, "custom": [], "spaces": {}, "encrypted": False}
    request = ProgramRequest(messages=[], model="m", stream=True, wire=wire)
    return ReplyHead(request=request, task="t", number=1, created=1)


def streamed(protocol: ProgramProtocol, reply: Reply, size: int) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(form, "PIECE", size)
        return protocol.stream(head()).end(reply)


def passed_on(protocol: ProgramProtocol, parts: list[ReplyPiece], reply: Reply) -> tuple[bytes, int]:
    """The stream of a reply that came in parts; how many of its bytes had gone out before the end."""
    stream = protocol.stream(head())
    before = b"".join([stream.take(part) for part in parts])
    data = before + stream.end(reply)
    assert not stream.differs
    return data, len(before)


def essence(reply: Any) -> Any:
    """What must be the same; arguments as values."""
    calls = [
        (c["function"]["name"], json.loads(c["function"]["arguments"] or "{}")) for c in reply.tool_calls or ()
    ]
    used = (reply.usage.input_tokens, reply.usage.output_tokens)
    return reply.text, reply.reasoning or None, calls, reply.finish_reason, used


def ours(protocol: ProgramProtocol, stream: bytes, hear: HearPiece | None = None) -> Reply:
    """The reply as our own clients read the stream, which were written for the services themselves."""

    async def events() -> Any:
        for block in stream.split(b"\n\n"):
            for line in block.split(b"\n"):
                if line.startswith(b"data: "):
                    yield line[6:]

    async def read() -> Reply:
        if protocol is CHAT:
            return await openai_chat.read_stream(events(), HERE, hear)
        if protocol is RESPONSES:
            return await openai_responses.read_stream(events(), HERE, hear)
        if protocol is MESSAGES:
            answer = anthropic_wire.AnthropicResponse(content=[])
            async for data in events():
                event = anthropic_wire._read_event(data, HERE)
                anthropic_wire._merge_event(answer, event, HERE)
                if hear is not None:
                    anthropic_wire._report_event(hear, answer, event)
            for block in answer.content:
                if isinstance(text := block.pop("partial_json", None), str):
                    block["input"] = call_arguments(text)
            return anthropic_wire.reply_of(answer)
        whole = gemini_wire.GeminiResponse()
        async for data in events():
            begun = len(gemini_wire._parts_of(whole))
            gemini_wire._merge_piece(whole, gemini_wire._answers.decode(data))
            if hear is not None:
                gemini_wire._report_parts(hear, whole, begun)
        return gemini_wire.reply_of(whole, HERE)

    return asyncio.run(read())


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
@given(reply=replies(), size=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_our_clients_read_back_what_was_said(protocol: ProgramProtocol, reply: Reply, size: int) -> None:
    assert essence(ours(protocol, streamed(protocol, reply, size))) == essence(reply)


@pytest.mark.parametrize("backend", PROTOCOLS, ids=lambda protocol: protocol.name)
@pytest.mark.parametrize("program", PROTOCOLS, ids=lambda protocol: protocol.name)
@given(reply=replies(), size=st.integers(1, 9))
@settings(max_examples=8, deadline=None)
def test_any_backend_streams_to_any_program(
    backend: ProgramProtocol, program: ProgramProtocol, reply: Reply, size: int
) -> None:
    """What a backend of one protocol streams is passed on in another one as it comes, and reads the same."""
    parts: list[ReplyPiece] = []
    whole = ours(backend, streamed(backend, reply, size), parts.append)
    History().keep_reply(whole)
    stream, before = passed_on(program, parts, whole)
    assert essence(ours(program, stream)) == essence(reply)
    if reply.text or reply.reasoning:
        assert before


@st.composite
def cut(draw: st.DrawFn) -> tuple[Reply, list[ReplyPiece]]:
    """A reply, and parts of it in an order that its own order allows: calls that are announced in their order, mixed,
    without arguments, whole at once, or not told at all."""
    reply = draw(replies())
    lines: list[list[ReplyPiece]] = []
    for name, text in (("reasoning", reply.reasoning or ""), ("text", reply.text)):
        size = draw(st.integers(1, 9))
        lines.append([ReplyPiece(**{name: piece}) for piece in form.split_text(text, size)])
    for number, made in enumerate(reply.tool_calls or ()):
        made["function"]["arguments"] = draw(st.sampled_from(["", made["function"]["arguments"]]))
        pieces = form.split_text(made["function"]["arguments"], draw(st.integers(1, 9)))
        begun = ReplyPiece(call=number, call_id=made["id"], name=made["function"]["name"])
        lines.append([begun, *(ReplyPiece(call=number, arguments=piece) for piece in pieces)])
    if draw(st.booleans()):  # in order
        parts = [part for line in lines for part in line]
    else:
        parts = []
        while any(lines):
            announced = sum(part.name != "" for part in parts)  # the next call is the only further one to begin
            parts.append(draw(st.sampled_from([line for line in lines[: 3 + announced] if line])).pop(0))
    return reply, parts[: draw(st.integers(0, len(parts)))] if draw(st.booleans()) else parts


@pytest.mark.parametrize("program", PROTOCOLS, ids=lambda protocol: protocol.name)
@given(made=cut())
@settings(max_examples=25, deadline=None)
def test_parts_in_any_order_and_number_become_the_reply(
    program: ProgramProtocol, made: tuple[Reply, list[ReplyPiece]]
) -> None:
    reply, parts = made
    stream, _ = passed_on(program, parts, reply)
    read = ours(program, stream)
    if program is RESPONSES:  # it has several items of reasoning, where that is mixed with text
        for told in (read, reply):
            told.reasoning = (told.reasoning or "").replace("\n\n", "")
    assert essence(read) == essence(reply)


@given(reply=replies(), size=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_the_official_openai_client_reads_back_what_was_said(reply: Reply, size: int) -> None:
    openai = pytest.importorskip("openai")
    calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in reply.tool_calls or ()]
    stream = streamed(CHAT, reply, size)
    made = openai.OpenAI(api_key="x", base_url="http://x", http_client=_http(openai, stream), max_retries=0)
    with made.chat.completions.stream(model="m", messages=[]) as chunks:
        events = list(chunks)
        message = chunks.current_completion_snapshot.choices[0].message
    assert events
    assert (message.content or "", getattr(message, "reasoning_content", None)) == (reply.text, reply.reasoning)
    assert [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()] == calls
    stream = streamed(RESPONSES, reply, size)
    made = openai.OpenAI(api_key="x", base_url="http://x", http_client=_http(openai, stream), max_retries=0)
    texts, arguments, thoughts = "", dict[int, str](), ""
    with made.responses.stream(model="m", input="a") as chunks:
        for event in chunks:
            if event.type == "response.output_text.delta":
                texts += event.delta
            elif event.type == "response.reasoning_text.delta":
                thoughts += event.delta
            elif event.type == "response.function_call_arguments.delta":
                arguments[event.output_index] = arguments.get(event.output_index, "") + event.delta
        final = chunks._state._ResponseStreamState__current_snapshot or None  # put together from the deltas alone
    assert (texts, thoughts or None) == (reply.text, reply.reasoning)
    assert list(arguments.values()) == [text for _, _, text in calls]
    assert final is not None
    assert [item.arguments for item in final.output if item.type == "function_call"] == [
        text for _, _, text in calls
    ]


@given(reply=replies(), size=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_the_official_anthropic_client_reads_back_what_was_said(reply: Reply, size: int) -> None:
    anthropic = pytest.importorskip("anthropic")
    stream = streamed(MESSAGES, reply, size)
    made = anthropic.Anthropic(
        api_key="x", base_url="http://x", http_client=_http(anthropic, stream), max_retries=0
    )
    with made.messages.stream(model="m", max_tokens=9, messages=[]) as chunks:
        message = chunks.get_final_message()
    texts = "".join(block.text for block in message.content if block.type == "text")
    thoughts = [block.thinking for block in message.content if block.type == "thinking"]
    assert (texts, thoughts) == (reply.text, [reply.reasoning] if reply.reasoning else [])
    assert [(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"] == [
        (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in reply.tool_calls or ()
    ]
    assert message.usage.output_tokens == reply.usage.output_tokens
    assert message.stop_reason == {"tool_calls": "tool_use", "length": "max_tokens"}.get(
        reply.finish_reason, "end_turn"
    )


def _http(package: Any, stream: bytes) -> Any:
    """The client of HTTP that a package is built on (httpx, or its successor)."""
    library: Any = (
        package._base_client.httpx if hasattr(package._base_client, "httpx") else package._base_client.httpx2
    )

    class Pieces(library.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for start in range(0, len(stream), 7):
                yield stream[start : start + 7]

    headers = {"Content-Type": "text/event-stream"}

    def answer(request: Any) -> Any:
        return library.Response(200, headers=headers, stream=Pieces())

    return library.Client(transport=library.MockTransport(answer))
