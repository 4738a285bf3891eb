# SPDX-License-Identifier: Apache-2.0
"""Anthropic Messages. https://docs.claude.com/en/api/messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from newskills.base.records import CacheMark, Message, Reply, ReplyPiece, Row, Usage
from newskills.gateway import shapes
from newskills.gateway.form import (
    GatewayProblem,
    ProgramRequest,
    ReplyHead,
    ReplyStream,
    Served,
    ToolChoice,
    argument_text,
    arguments_of,
    bad_request,
    encode_event,
    encode_json,
    name_of,
)
from newskills.gateway.streams import BlockStream, ReplyBlock

BILLING = "x-anthropic-billing-header"
"""How a line of Claude Code's system prompt begins that differs in each request: no prompt cache would ever be hit."""
SIGNATURE = "newskills"
"""Signature of thinking that another backend has written: clients want one, and send it back unread."""
STOPS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
EMPTY: dict[str, Row] = {
    "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
    "text": {"type": "text", "text": ""},
}
"""How blocks begin in a stream."""
DELTAS = {
    "reasoning": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "call": ("input_json_delta", "partial_json"),
}
"""How they grow: type of the delta, and its key."""
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
    ping = encode_event({"type": "ping"}, "ping")

    def read(self, body: Row, model: str, stream: bool) -> ProgramRequest:
        thinking = shapes.read_row(body.get("thinking"), "thinking")
        output = shapes.read_row(body.get("output_config"), "output_config")
        request = ProgramRequest(
            messages=[],
            model=shapes.read_text(body.get("model"), "model"),
            stop=shapes.read_texts(body.get("stop_sequences"), "stop_sequences"),
            max_tokens=shapes.read_whole(body.get("max_tokens"), "max_tokens"),
            temperature=shapes.read_number(body.get("temperature"), "temperature", 0, 2),
            top_p=shapes.read_number(body.get("top_p"), "top_p", 0, 1) or None,
            stream=body.get("stream") is True,
            choice=_read_tool_choice(shapes.read_row(body.get("tool_choice"), "tool_choice")),
        )
        if thinking.get("type") in ("enabled", "adaptive"):
            request.effort = shapes.read_text(output.get("effort"), "output_config.effort") or None
        if output.get("format") is not None:
            schema = shapes.read_row(output["format"], "output_config.format").get("schema")
            request.response_format = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": shapes.read_row(schema, "output_config.format.schema")},
            }
        marks = _Marks()
        system = _read_system(body.get("system"), marks)
        messages = [Message(role="system", content=system)] if system else []
        for item in shapes.read_rows(body.get("messages"), "messages"):
            messages += _read_turn(item, request, marks)
        if not any(message.role != "system" for message in messages):
            raise bad_request("messages: at least one message is required.")
        request.messages = shapes.join_system_messages(messages)
        for number, offered in enumerate(shapes.read_rows(body.get("tools"), "tools")):
            kind = offered.get("type") or "custom"
            if kind != "custom":
                request.note(f"dropped a tool of type {str(kind)[:100]}")
                continue
            if _is_marked(offered):
                control = offered["cache_control"]
                request.cache_marks.append(CacheMark(message=None, end=len(request.tools) + 1, control=control))
            described = offered.get("description")
            request.tools.append(
                shapes.tool_definition(
                    offered.get("name"), described, offered.get("input_schema"), f"tools[{number}]"
                )
            )
        request.cache_marks += marks.marks_of(request.messages)
        if request.messages and _is_marked(body):
            last = len(request.messages) - 1
            request.cache_marks.append(CacheMark(message=last, control=body["cache_control"]))
        shapes.check_choice(request)
        return request

    def answer(self, served: Served) -> Row:
        return {
            **_message_head(served),
            "content": list(_content_blocks(served.reply)),
            **_stop_fields(served.reply),
            "usage": _usage_counts(served.reply.usage),
        }

    def stream(self, head: ReplyHead) -> ReplyStream:
        return MessagesStream(head, self)

    def error(self, problem: GatewayProblem) -> Row:
        kind = ERROR_TYPES.get(problem.kind, "invalid_request_error")
        message = problem.message
        if problem.kind == "context":
            message = f"prompt is too long: {message}"  # by these words clients know to shorten it
        return {"type": "error", "error": {"type": kind, "message": message}}

    def count(self, tokens: int) -> Row:
        return {"input_tokens": tokens}


class MessagesStream(BlockStream):
    """A reply as blocks of content."""

    def __init__(self, head: ReplyHead, protocol: MessagesProtocol) -> None:
        super().__init__(head)
        self._protocol = protocol
        self._signed = False

    def beginning(self) -> bytes:
        start = {**_message_head(self.head), "content": [], "stop_reason": None, "stop_sequence": None}
        used = {**_usage_counts(self.usage), "output_tokens": 0}
        return _named_event({"type": "message_start", "message": {**start, "usage": used}})

    def opening(self, block: ReplyBlock) -> bytes:
        self._signed = False
        content = {"type": "tool_use", "id": block.call_id, "name": block.name, "input": {}}
        if block.kind != "call":
            content = EMPTY[block.kind]
        return _named_event({"type": "content_block_start", "index": block.number, "content_block": content})

    def growth(self, block: ReplyBlock, text: str) -> bytes:
        kind, key = DELTAS[block.kind]
        return self._delta(block, {"type": kind, key: text})

    def closing(self, block: ReplyBlock, reply: Reply | None) -> bytes:
        data = b""
        if block.kind == "reasoning" and not self._signed:
            data = self._delta(block, {"type": "signature_delta", "signature": SIGNATURE})
        return data + _named_event({"type": "content_block_stop", "index": block.number})

    def ending(self, reply: Reply) -> bytes:
        end = _named_event(
            {"type": "message_delta", "delta": _stop_fields(reply), "usage": _usage_counts(reply.usage)}
        )
        return end + _named_event({"type": "message_stop"})

    def failure(self, problem: GatewayProblem, *, begun: bool) -> bytes:
        return encode_event(self._protocol.error(problem), "error")

    def native(self, piece: ReplyPiece) -> bool:
        row = piece.native or {}
        if row.get("type") == "signature_delta":
            block = self.block("reasoning")
            self._signed = True
            self.write(self._delta(block, row))
            self.close()
        elif row.get("type") == "redacted_thinking":
            self.close()
            number = self.next_number()
            self.write(_named_event({"type": "content_block_start", "index": number, "content_block": row}))
            self.write(_named_event({"type": "content_block_stop", "index": number}))
        else:
            return False
        return True

    def thoughts(self, reply: Reply) -> Iterator[ReplyPiece]:
        signed = _signed_blocks(reply)
        if not signed:
            yield from super().thoughts(reply)
        for block in signed:
            if block["type"] == "redacted_thinking":
                yield ReplyPiece(native=block)
                continue
            yield ReplyPiece(reasoning=block.get("thinking") or "")
            signature = block.get("signature") or SIGNATURE
            yield ReplyPiece(native={"type": "signature_delta", "signature": signature})

    def arguments(self, call: Row) -> str:
        """Return JSON of an object: as the model wrote it, where that is one."""
        value = arguments_of(call)
        if "arguments" in value:
            return encode_json(value).decode()
        return argument_text(call) or "{}"

    def _delta(self, block: ReplyBlock, delta: Row) -> bytes:
        return _named_event({"type": "content_block_delta", "index": block.number, "delta": delta})


def _named_event(value: Row) -> bytes:
    return encode_event(value, value["type"])


def _message_head(served: ReplyHead) -> Row:
    return {"id": f"msg_{served.id}", "type": "message", "role": "assistant", "model": served.request.model}


def _stop_fields(reply: Reply) -> Row:
    named = (reply.raw_message or {}).get("stop_reason")
    if reply.finish_reason == "stop" and isinstance(named, str) and not reply.tool_calls:
        return {"stop_reason": "stop_sequence", "stop_sequence": named}
    usual = "tool_use" if reply.tool_calls else "end_turn"
    return {"stop_reason": STOPS.get(reply.finish_reason or "", usual), "stop_sequence": None}


def _usage_counts(counts: Usage) -> Row:
    cached, stored = counts.cached_tokens or 0, counts.cache_written_tokens or 0
    return {
        "input_tokens": max(0, (counts.input_tokens or 0) - cached - stored),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": stored,
        "output_tokens": counts.output_tokens or 0,
    }


def _content_blocks(reply: Reply) -> Iterator[Row]:
    """Yield the content of a reply. Thinking goes out with the signature that the backend gave it, if it did."""
    if signed := _signed_blocks(reply):
        yield from signed
    elif reply.reasoning:
        yield {"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE}
    if reply.text or not (reply.tool_calls or reply.reasoning):
        yield {"type": "text", "text": reply.text}
    for call in reply.tool_calls or ():
        yield {"type": "tool_use", "id": call.get("id"), "name": name_of(call), "input": arguments_of(call)}


def _signed_blocks(reply: Reply) -> list[Row]:
    """Return the blocks of thinking as the backend wrote them, where it speaks this protocol."""
    content = (reply.raw_message or {}).get("content")
    if not isinstance(content, list):
        return []
    return [block for block in content if block.get("type") in ("thinking", "redacted_thinking")]


class _Marks:
    """Marks for a cache, while a request is read: of the system's text, and of messages."""

    def __init__(self) -> None:
        self.system: list[tuple[int, Row]] = []
        self._messages: list[tuple[Message, int | None, Row]] = []

    def add(self, message: Message, end: int | None, block: Row) -> None:
        """Add the mark of a block, if it has one; `end` as in CacheMark."""
        if _is_marked(block):
            self._messages.append((message, end, block["cache_control"]))

    def marks_of(self, messages: list[Message]) -> Iterator[CacheMark]:
        """Yield the marks. The system's text is the beginning of the first message."""
        for end, control in self.system:
            yield CacheMark(message=0, end=end, control=control)
        places = {id(message): number for number, message in enumerate(messages)}
        for message, last, control in self._messages:
            if id(message) in places:
                yield CacheMark(message=places[id(message)], end=last, control=control)


def _is_marked(block: Row) -> bool:
    return isinstance(block.get("cache_control"), dict)


def _read_system(value: Any, marks: _Marks) -> str:
    if isinstance(value, str):
        return value
    joined = ""
    for block in shapes.read_rows(value, "system"):
        text = shapes.read_text(block.get("text"), "system: a block's text")
        if text and not text.startswith(BILLING):
            joined = f"{joined}\n\n{text}" if joined else text
            if _is_marked(block):
                marks.system.append((len(joined), block["cache_control"]))
    return joined


def _read_turn(item: Row, request: ProgramRequest, marks: _Marks) -> list[Message]:
    role, content = shapes.read_text(item.get("role"), "a message's role"), item.get("content")
    if role not in ("user", "assistant", "system"):
        raise bad_request(f"messages: the role '{role[:100]}' is not supported.")
    if isinstance(content, str):
        return [Message(role=role, content=content)]
    blocks = shapes.read_rows(content, "a message's content")
    if role == "assistant":
        message = _read_assistant(blocks, request)
        marks.add(message, None, blocks[-1] if blocks else {})
        return [message]
    messages, parts, marked = list[Message](), list[Row](), list[tuple[int, Row]]()
    for block in blocks:
        if block.get("type") == "tool_result":
            result, pictures = _tool_result(block, request)
            messages.append(result)
            parts += pictures
            marks.add(result, None, block)
        elif (part := _read_part(block, request)) is not None:
            parts.append(part)
            marked.append((len(parts), block))
    if parts or not messages:
        texts = [part["text"] for part in parts if part["type"] == "text"]
        message = Message(role=role, content=parts)
        if len(texts) == len(parts):
            message.content = "\n\n".join(texts)
            marked = [(len("\n\n".join(texts[:count])), block) for count, block in marked]
        messages.append(message)
        for end, block in marked:
            marks.add(message, end, block)
    return messages


def _read_assistant(blocks: list[Row], request: ProgramRequest) -> Message:
    texts, thoughts, calls = list[str](), list[str](), list[Row]()
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            texts.append(shapes.read_text(block.get("text"), "a text block"))
        elif kind == "thinking":
            thoughts.append(shapes.read_text(block.get("thinking"), "a thinking block"))
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
    identity, name = (
        shapes.read_text(block.get("id"), "tool_use.id"),
        shapes.read_text(block.get("name"), "tool_use.name"),
    )
    arguments = encode_json(shapes.read_row(block.get("input"), "tool_use.input")).decode()
    return shapes.tool_call(identity, name, arguments)


def _tool_result(block: Row, request: ProgramRequest) -> tuple[Message, list[Row]]:
    """Return the result as a message, and its pictures, which the message of a tool cannot hold."""
    content = block.get("content")
    identity = shapes.read_text(block.get("tool_use_id"), "tool_result.tool_use_id")
    if isinstance(content, str) or content is None:
        return Message(role="tool", content=content or "", tool_call_id=identity), []
    parts = [_read_part(part, request) for part in shapes.read_rows(content, "tool_result.content")]
    texts = [part["text"] for part in parts if part is not None and part["type"] == "text"]
    pictures = [part for part in parts if part is not None and part["type"] != "text"]
    return Message(role="tool", content="\n".join(texts), tool_call_id=identity), pictures


def _read_part(block: Row, request: ProgramRequest) -> Row | None:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": shapes.read_text(block.get("text"), "a text block")}
    if kind == "tool_reference":  # what a search among tools gives; their definitions come with the next request
        name = shapes.read_text(block.get("tool_name"), "tool_reference.tool_name")
        return {"type": "text", "text": f"The tool {name} can be called now."}
    source = shapes.read_row(block.get("source"), "a block's source")
    if kind == "image":
        if source.get("type") == "url":
            return shapes.image_part(shapes.read_text(source.get("url"), "image.source.url"))
        if source.get("type") == "base64":
            data = shapes.read_text(source.get("data"), "image.source.data")
            return shapes.image_part(
                f"data:{shapes.read_text(source.get('media_type'), 'media_type')};base64,{data}"
            )
    if kind == "document" and source.get("type") == "text":
        return {"type": "text", "text": shapes.read_text(source.get("data"), "document.source.data")}
    if kind in ("image", "document"):
        raise bad_request(
            f"A block {kind} with a source of type '{str(source.get('type'))[:100]}' is not supported."
        )
    if not str(kind).endswith("_tool_result"):
        raise bad_request(f"Blocks of type '{str(kind)[:100]}' are not supported.")
    request.note(f"dropped a block of type {str(kind)[:100]}")  # of a tool that the service itself would run
    return None


def _read_tool_choice(value: Row) -> ToolChoice:
    alone = value.get("disable_parallel_tool_use")
    parallel = not alone if isinstance(alone, bool) else None
    kind = value.get("type", "auto")
    if kind in ("auto", "none", "any"):
        return ToolChoice(mode=kind, parallel=parallel)
    if kind == "tool":
        return ToolChoice(
            mode="any", name=shapes.read_text(value.get("name"), "tool_choice.name"), parallel=parallel
        )
    raise bad_request(f"tool_choice: '{str(kind)[:100]}' is not supported.")
