# SPDX-License-Identifier: Apache-2.0
"""Anthropic Messages. https://docs.claude.com/en/api/messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from newskills.base.records import Message, Reply, Row
from newskills.gateway import shapes
from newskills.gateway.form import (
    GatewayProblem,
    ProgramRequest,
    Served,
    ToolChoice,
    argument_text,
    arguments_of,
    encode,
    event,
    name_of,
    pieces,
    refuse,
)

BILLING = "x-anthropic-billing-header"
"""How a line of Claude Code's system prompt begins that differs in each request: no prompt cache would ever be hit."""
SIGNATURE = "newskills"
"""Signature of thinking that another backend has written: clients want one, and send it back unread."""
STOPS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
EMPTY: dict[str, Row] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}
"""How blocks begin in a stream."""
ERROR_TYPES = {
    "authentication": "authentication_error",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "too_large": "request_too_large",
    "rate": "rate_limit_error",
    "overloaded": "overloaded_error",
    "server": "api_error",
}


class MessagesProtocol:
    """Fits `ProgramProtocol`."""

    name = "messages"
    ping = event({"type": "ping"}, "ping")

    def read(self, body: Row, model: str, stream: bool) -> ProgramRequest:
        thinking = shapes.row(body.get("thinking"), "thinking")
        output = shapes.row(body.get("output_config"), "output_config")
        request = ProgramRequest(
            messages=[],
            model=shapes.text(body.get("model"), "model"),
            stop=shapes.texts(body.get("stop_sequences"), "stop_sequences"),
            max_tokens=shapes.whole(body.get("max_tokens"), "max_tokens"),
            temperature=shapes.number(body.get("temperature"), "temperature", 0, 2),
            top_p=shapes.number(body.get("top_p"), "top_p", 0, 1) or None,
            stream=body.get("stream") is True,
            choice=_choice(shapes.row(body.get("tool_choice"), "tool_choice")),
        )
        if thinking.get("type") in ("enabled", "adaptive"):
            request.effort = shapes.text(output.get("effort"), "output_config.effort") or None
        if output.get("format") is not None:
            schema = shapes.row(output["format"], "output_config.format").get("schema")
            request.response_format = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": shapes.row(schema, "output_config.format.schema")},
            }
        system = _system(body.get("system"))
        messages = [Message(role="system", content=system)] if system else []
        for item in shapes.rows(body.get("messages"), "messages"):
            messages += _read_turn(item, request)
        if not any(message.role != "system" for message in messages):
            raise refuse("messages: at least one message is required.")
        request.messages = shapes.joined_system(messages)
        for number, offered in enumerate(shapes.rows(body.get("tools"), "tools")):
            kind = offered.get("type") or "custom"
            if kind != "custom":
                request.note(f"dropped a tool of type {str(kind)[:100]}")
                continue
            described = offered.get("description")
            request.tools.append(
                shapes.tool(offered.get("name"), described, offered.get("input_schema"), f"tools[{number}]")
            )
        shapes.check_choice(request)
        return request

    def answer(self, served: Served) -> Row:
        return {
            **_head(served),
            "content": list(_blocks(served.reply)),
            **_end(served.reply),
            "usage": _usage(served.reply),
        }

    def events(self, served: Served) -> Iterator[bytes]:
        reply = served.reply
        usage = _usage(reply)
        start = {**_head(served), "content": [], "stop_reason": None, "stop_sequence": None}
        yield _named({"type": "message_start", "message": {**start, "usage": {**usage, "output_tokens": 0}}})
        for index, block in enumerate(_blocks(reply)):
            yield from _block_events(index, block, reply)
        yield _named({"type": "message_delta", "delta": _end(reply), "usage": usage})
        yield _named({"type": "message_stop"})

    def error(self, problem: GatewayProblem) -> Row:
        kind = ERROR_TYPES.get(problem.kind, "invalid_request_error")
        message = problem.message
        if problem.kind == "context":
            message = f"prompt is too long: {message}"  # by these words clients know to shorten it
        return {"type": "error", "error": {"type": kind, "message": message}}

    def error_event(self, problem: GatewayProblem) -> bytes:
        return event(self.error(problem), "error")

    def count(self, tokens: int) -> Row:
        return {"input_tokens": tokens}


def _named(value: Row) -> bytes:
    return event(value, value["type"])


def _head(served: Served) -> Row:
    return {"id": f"msg_{served.id}", "type": "message", "role": "assistant", "model": served.request.model}


def _end(reply: Reply) -> Row:
    named = (reply.raw_message or {}).get("stop_reason")
    if reply.finish_reason == "stop" and isinstance(named, str) and not reply.tool_calls:
        return {"stop_reason": "stop_sequence", "stop_sequence": named}
    usual = "tool_use" if reply.tool_calls else "end_turn"
    return {"stop_reason": STOPS.get(reply.finish_reason or "", usual), "stop_sequence": None}


def _usage(reply: Reply) -> Row:
    counts = reply.usage
    cached = counts.cached_tokens or 0
    return {
        "input_tokens": max(0, (counts.input_tokens or 0) - cached),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": counts.output_tokens or 0,
    }


def _blocks(reply: Reply) -> Iterator[Row]:
    """Yield the content of a reply. Thinking goes out with the signature that the backend gave it, if it did."""
    signed = [block for block in _raw_blocks(reply) if block.get("type") in ("thinking", "redacted_thinking")]
    if signed:
        yield from signed
    elif reply.reasoning:
        yield {"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE}
    if reply.text or not (reply.tool_calls or reply.reasoning):
        yield {"type": "text", "text": reply.text}
    for call in reply.tool_calls or ():
        yield {"type": "tool_use", "id": call.get("id"), "name": name_of(call), "input": arguments_of(call)}


def _raw_blocks(reply: Reply) -> list[Row]:
    content = (reply.raw_message or {}).get("content")
    if isinstance(content, list):
        return content
    return []


def _block_events(index: int, block: Row, reply: Reply) -> Iterator[bytes]:
    def delta(value: Row) -> bytes:
        return _named({"type": "content_block_delta", "index": index, "delta": value})

    kind = block["type"]
    yield _named(
        {"type": "content_block_start", "index": index, "content_block": {**block, **EMPTY.get(kind, {})}}
    )
    if kind == "thinking":
        for piece in pieces(block.get("thinking") or ""):
            yield delta({"type": "thinking_delta", "thinking": piece})
        yield delta({"type": "signature_delta", "signature": block.get("signature") or SIGNATURE})
    elif kind == "text":
        for piece in pieces(block["text"]):
            yield delta({"type": "text_delta", "text": piece})
    elif kind == "tool_use":
        for piece in pieces(_input_text(block, reply)):
            yield delta({"type": "input_json_delta", "partial_json": piece})
    yield _named({"type": "content_block_stop", "index": index})


def _input_text(block: Row, reply: Reply) -> str:
    """Return the arguments as JSON of an object: as the model wrote them, where that is one."""
    for call in reply.tool_calls or ():
        if call.get("id") == block["id"] and "arguments" not in block["input"]:
            return argument_text(call) or "{}"
    return encode(block["input"]).decode()


def _system(value: Any) -> str:
    if isinstance(value, str):
        return value
    texts = [shapes.text(block.get("text"), "system: a block's text") for block in shapes.rows(value, "system")]
    return "\n\n".join(text for text in texts if text and not text.startswith(BILLING))


def _read_turn(item: Row, request: ProgramRequest) -> list[Message]:
    role, content = shapes.text(item.get("role"), "a message's role"), item.get("content")
    if role not in ("user", "assistant", "system"):
        raise refuse(f"messages: the role '{role[:100]}' is not supported.")
    if isinstance(content, str):
        return [Message(role=role, content=content)]
    blocks = shapes.rows(content, "a message's content")
    if role == "assistant":
        return [_read_assistant(blocks, request)]
    messages, parts = list[Message](), list[Row]()
    for block in blocks:
        if block.get("type") == "tool_result":
            result, pictures = _tool_result(block, request)
            messages.append(result)
            parts += pictures
        elif (part := _read_part(block, request)) is not None:
            parts.append(part)
    if parts or not messages:
        texts = [part for part in parts if part["type"] == "text"]
        whole = "\n\n".join(part["text"] for part in texts) if len(texts) == len(parts) else parts
        messages.append(Message(role=role, content=whole))
    return messages


def _read_assistant(blocks: list[Row], request: ProgramRequest) -> Message:
    texts, thoughts, calls = list[str](), list[str](), list[Row]()
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            texts.append(shapes.text(block.get("text"), "a text block"))
        elif kind == "thinking":
            thoughts.append(shapes.text(block.get("thinking"), "a thinking block"))
        elif kind == "tool_use":
            calls.append(_read_call(block))
        elif kind != "redacted_thinking":
            request.note(f"dropped a block of type {str(kind)[:100]}")
    return Message(
        role="assistant",
        content="".join(texts),
        tool_calls=calls or None,
        reasoning_content="".join(thoughts) or None,
    )


def _read_call(block: Row) -> Row:
    identity, name = shapes.text(block.get("id"), "tool_use.id"), shapes.text(block.get("name"), "tool_use.name")
    arguments = encode(shapes.row(block.get("input"), "tool_use.input")).decode()
    return shapes.call(identity, name, arguments)


def _tool_result(block: Row, request: ProgramRequest) -> tuple[Message, list[Row]]:
    """Return the result as a message, and its pictures, which the message of a tool cannot hold."""
    content = block.get("content")
    identity = shapes.text(block.get("tool_use_id"), "tool_result.tool_use_id")
    if isinstance(content, str) or content is None:
        return Message(role="tool", content=content or "", tool_call_id=identity), []
    parts = [_read_part(part, request) for part in shapes.rows(content, "tool_result.content")]
    texts = [part["text"] for part in parts if part is not None and part["type"] == "text"]
    pictures = [part for part in parts if part is not None and part["type"] != "text"]
    return Message(role="tool", content="\n".join(texts), tool_call_id=identity), pictures


def _read_part(block: Row, request: ProgramRequest) -> Row | None:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": shapes.text(block.get("text"), "a text block")}
    source = shapes.row(block.get("source"), "a block's source")
    if kind == "image":
        if source.get("type") == "url":
            return shapes.image(shapes.text(source.get("url"), "image.source.url"))
        if source.get("type") == "base64":
            data = shapes.text(source.get("data"), "image.source.data")
            return shapes.image(f"data:{shapes.text(source.get('media_type'), 'media_type')};base64,{data}")
    if kind == "document" and source.get("type") == "text":
        return {"type": "text", "text": shapes.text(source.get("data"), "document.source.data")}
    if kind in ("image", "document"):
        raise refuse(f"A block {kind} with a source of type '{str(source.get('type'))[:100]}' is not supported.")
    if not str(kind).endswith("_tool_result"):
        raise refuse(f"Blocks of type '{str(kind)[:100]}' are not supported.")
    request.note(f"dropped a block of type {str(kind)[:100]}")  # of a tool that the service itself would run
    return None


def _choice(value: Row) -> ToolChoice:
    alone = value.get("disable_parallel_tool_use")
    parallel = None if not isinstance(alone, bool) else not alone
    kind = value.get("type", "auto")
    if kind in ("auto", "none", "any"):
        return ToolChoice(mode=kind, parallel=parallel)
    if kind == "tool":
        return ToolChoice(mode="any", name=shapes.text(value.get("name"), "tool_choice.name"), parallel=parallel)
    raise refuse(f"tool_choice: '{str(kind)[:100]}' is not supported.")
