# SPDX-License-Identifier: Apache-2.0
"""Bodies and replies of the responses endpoint. It knows no stop phrases: the caller cuts the text itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.callbacks import HearPiece
from newskills.base.errors import ServerError, TransportError
from newskills.base.records import Message, Reply, ReplyPiece, Request, Row
from newskills.models.decode import (
    decode_body,
    image_url_of,
    logprobs_of,
    member_of,
    text_or_none,
    tool_call,
    usage_of,
)
from newskills.models.errors import EndpointIdentity, error_for, refusal_of

FINISHES = {"max_output_tokens": "length", "content_filter": "content_filter"}
THOUGHTS = frozenset({"reasoning_text.delta", "reasoning_summary_text.delta"})
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesReply(Struct):
    output: list[Row] = []
    status: str | None = None
    incomplete_details: Any = None
    usage: Any = None
    model: Any = None
    error: Any = None


class Event(Struct):
    type: str = ""
    response: ResponsesReply | None = None
    error: Any = None
    message: Any = None
    delta: Any = None
    item: Row | None = None
    output_index: Any = None
    content_index: Any = None
    summary_index: Any = None


_responses = msgspec.json.Decoder(ResponsesReply)
_events = msgspec.json.Decoder(Event)


def request_keys(request: Request, *, developer: bool = False, echoes: bool = False) -> Row:
    """Return the body keys that belong to this request alone. Nothing is kept on the server."""
    items = input_items(request.messages or [], developer=developer, echoes=echoes)
    body: Row = {"input": items, "store": False}
    if request.tools:
        # Left out, `strict` means true to some servers, which then refuse or rewrite schemas with optional parameters.
        kind: Row = {"type": "function", "strict": False}
        body["tools"] = [{**kind, **tool.get("function", tool)} for tool in request.tools]
    if request.response_format is not None:
        schema = request.response_format.get("json_schema")
        flat = {"type": request.response_format.get("type")}
        if isinstance(schema, dict):
            flat |= schema
        body["text"] = {"format": flat}
    return body


def input_items(messages: list[Message], *, developer: bool = False, echoes: bool = False) -> list[Row]:
    """Convert chat messages to items: messages, function calls and their outputs; with `echoes` reasoning, too."""
    items: list[Row] = []
    for message in messages:
        if message.role == "tool":
            output = message.content if isinstance(message.content, str) else ""
            items.append({"type": "function_call_output", "call_id": message.tool_call_id, "output": output})
            continue
        if echoes and message.reasoning_content:
            thought = [{"type": "reasoning_text", "text": message.reasoning_content}]
            items.append({"type": "reasoning", "id": f"rs_{len(items)}", "summary": [], "content": thought})
        if message.content:
            role = "developer" if developer and message.role == "system" else message.role
            items.append({"role": role, "content": _content_parts(message.content, message.role)})
        for call in message.tool_calls or ():
            function = call.get("function", {})
            function_fields = {"name": function.get("name"), "arguments": function.get("arguments")}
            items.append({"type": "function_call", "call_id": call.get("id"), **function_fields})
    return items


def decode_reply(body: bytes, endpoint: EndpointIdentity) -> Reply:
    """Read the reply from a body. Raises ServerError for a body without output, and the ModelError that a failed
    response stands for."""
    return _reply_of(decode_body(body, _responses, ResponsesReply, endpoint.address), endpoint)


async def read_stream(
    events: AsyncIterator[bytes], endpoint: EndpointIdentity, hear: HearPiece | None = None
) -> Reply:
    """Read the reply from the last event, which holds the whole response. Raises TransportError for a stream that ends
    without it."""
    last: ResponsesReply | None = None
    tell = _Teller(hear) if hear is not None else None
    async for data in events:
        if data == b"[DONE]":
            continue
        event = decode_body(data, _events, Event, endpoint.address)
        if event.type == "error" or event.error:
            raise error_for(500, refusal_of({"error": event.error or event.message}), endpoint)
        if tell is not None:
            tell(event)
        if event.type in ENDS:
            last = event.response
    if last is None:
        raise TransportError(f"{endpoint.address} ended its stream in the middle of the reply.")
    return _reply_of(last, endpoint)


class _Teller:
    """Tells a listener of the parts of a reply."""

    def __init__(self, hear: HearPiece) -> None:
        self._hear = hear
        self._calls: dict[Any, int] = {}
        self._thoughts: list[tuple[Any, ...]] = []

    def __call__(self, event: Event) -> None:
        kind, delta = event.type.removeprefix("response."), event.delta
        item = event.item or {}
        if kind == "output_item.added" and item.get("type") == "function_call":
            number = self._calls.setdefault(event.output_index, len(self._calls))
            self._hear(ReplyPiece(call=number, call_id=item.get("call_id") or "", name=item.get("name") or ""))
        if not isinstance(delta, str) or not delta:
            return
        if kind in ("output_text.delta", "refusal.delta"):
            self._hear(ReplyPiece(text=delta))
        elif kind == "function_call_arguments.delta" and event.output_index in self._calls:
            self._hear(ReplyPiece(call=self._calls[event.output_index], arguments=delta))
        elif kind in THOUGHTS:
            self._think(event, kind, delta)

    def _think(self, event: Event, kind: str, delta: str) -> None:
        """Tell of reasoning. Its parts are joined as in the whole reply, and a summary counts where the server tells
        nothing else of an item."""
        part = (event.output_index, kind, event.content_index, event.summary_index)
        kinds = {other[1] for other in self._thoughts if other[0] == event.output_index}
        if kinds and kind not in kinds:
            return
        if part not in self._thoughts:
            delta = "\n\n" * bool(self._thoughts) + delta
            self._thoughts.append(part)
        self._hear(ReplyPiece(reasoning=delta))


def _reply_of(response: ResponsesReply, endpoint: EndpointIdentity) -> Reply:
    if response.error or response.status in ("failed", "cancelled"):
        raise error_for(500, refusal_of({"error": response.error or f"status {response.status}"}), endpoint)
    if not response.output and response.status != "incomplete":
        raise ServerError(f"{endpoint.address} answered without any output.", status=200)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Row] = []
    logprobs: list[Any] = []
    for item in response.output:
        kind = item.get("type")
        if kind == "message":
            for part in item.get("content") or ():
                texts.append(part.get("text") or part.get("refusal") or "")
                logprobs += part.get("logprobs") or ()
        elif kind == "reasoning":
            parts = item.get("content") or item.get("summary") or ()
            thoughts += [part.get("text") or "" for part in parts]
        elif kind == "function_call":
            calls.append(tool_call(item.get("call_id") or "", item.get("name") or "", item.get("arguments") or ""))
    text = "".join(texts)
    raw_message: Row = {"role": "assistant", "content": text}
    if calls:
        raw_message["tool_calls"] = calls
    return Reply(
        text=text,
        reasoning="\n\n".join(thoughts) or None,
        finish_reason=_finish_reason(response, calls),
        usage=usage_of(response.usage),
        tool_calls=calls or None,
        logprobs=logprobs_of({"content": logprobs}) if logprobs else None,
        model=text_or_none(response.model),
        raw_message=raw_message,
    )


def mark_cut(reply: Reply, limit: int | None) -> None:
    """Mark a text cut at the limit as truncated where the server says `completed` (llama.cpp), so that it is no
    answer."""
    produced = reply.usage.output_tokens
    if reply.finish_reason == "stop" and limit is not None and produced is not None and produced >= limit:
        reply.finish_reason = "length"


def _finish_reason(response: ResponsesReply, calls: list[Row]) -> str:
    if response.status == "incomplete":
        reason = member_of(response.incomplete_details, "reason")
        return FINISHES.get(str(reason), "length")
    if calls:
        return "tool_calls"
    return "stop"


def _content_parts(content: str | list[Row], role: str) -> str | list[Row]:
    if isinstance(content, str):
        return content
    text_type = "output_text" if role == "assistant" else "input_text"
    parts: list[Row] = []
    for part in content:
        if part.get("type") == "text":
            parts.append({"type": text_type, "text": part.get("text", "")})
        elif part.get("type") == "image_url":
            parts.append({"type": "input_image", "image_url": image_url_of(part)})
        else:
            parts.append(part)
    return parts
