# SPDX-License-Identifier: Apache-2.0
"""Bodies and replies of the chat and completions endpoints, whole and streamed."""

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
    drafts_of,
    logprobs_of,
    member_of,
    text_or_none,
    tokens_of,
    usage_of,
    with_prompt,
)
from newskills.models.errors import EndpointIdentity, error_for, refusal_of
from newskills.models.kinds import Dialect

BROKEN_FINISHES = frozenset({"error", "abort", "cancelled"})
"""Finish reasons that say that the server failed; the model gave no answer."""
TRUNCATING_FINISHES = frozenset(
    {"max_tokens", "max_output_tokens", "model_context_window_exceeded", "model_length"}
)
"""What gateways pass on of other APIs where a reply was cut at a limit."""


class ChatChoice(Struct):
    message: Row | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Any = None
    prompt_logprobs: Any = None
    token_ids: Any = None
    stop_reason: Any = None
    matched_stop: Any = None
    error: Any = None


class Completion(Struct):
    choices: list[ChatChoice] = []
    usage: Any = None
    metrics: Any = None
    model: Any = None
    error: Any = None
    prompt_token_ids: Any = None


class ModelListing(Struct):
    data: list[Row]


_completions = msgspec.json.Decoder(Completion)
_listings = msgspec.json.Decoder(ModelListing)


def request_keys(request: Request, dialect: Dialect, *, developer: bool = False) -> Row:
    """Return the body keys that belong to this request alone."""
    if request.inference.endpoint_type == "text":
        body: Row = {"prompt": request.prompt if request.prompt is not None else ""}
    else:
        body = {"messages": wire_messages(request.messages or [], dialect, developer=developer)}
    if request.stop:
        body["stop"] = request.stop
    if request.tools:
        body["tools"] = request.tools
        if dialect.tool_choice:
            body["tool_choice"] = dialect.tool_choice
    if request.response_format is not None:
        body["response_format"] = request.response_format
    return body


def wire_messages(
    messages: list[Message], dialect: Dialect, *, developer: bool = False
) -> list[Message] | list[Row]:
    """Convert messages to what the endpoint takes; most pass unchanged."""
    if not developer and not any(message.reasoning_content for message in messages):
        return messages
    rows: list[Row] = []
    for message in messages:
        row = msgspec.to_builtins(message)
        if developer and message.role == "system":
            row["role"] = "developer"
        if not dialect.echoes:
            row.pop("reasoning_content", None)
        elif message.reasoning_content:
            row["reasoning"] = message.reasoning_content
        rows.append(row)
    return rows


def decode_reply(body: bytes, endpoint: EndpointIdentity) -> Reply:
    """Read the reply from a body. Raises ServerError for a body without a usable choice, and the ModelError that an
    error inside a 200 stands for."""
    return reply_of(decode_body(body, _completions, Completion, endpoint.address), endpoint)


def model_names(body: bytes, address: str) -> list[str]:
    """Return the ids of a `/models` reply. Raises ServerError."""
    return [str(row.get("id", "")) for row in decode_body(body, _listings, ModelListing, address).data]


def reply_of(completion: Completion, endpoint: EndpointIdentity) -> Reply:
    """Convert a server's answer to a Reply.

    Raises ServerError (no choice, a broken one), or the ModelError that it holds.
    """
    error = completion.error
    choice = completion.choices[0] if completion.choices else None
    if choice is not None:
        error = error or choice.error
    if error:
        raise error_for(_status_in(error), refusal_of({"error": error}), endpoint)
    if choice is None:
        raise ServerError(f"{endpoint.address} answered without any choice.", status=200)
    if choice.finish_reason in BROKEN_FINISHES:
        raise ServerError(
            f"{endpoint.address} aborted the request (finish_reason {choice.finish_reason}).", status=200
        )
    if choice.finish_reason in TRUNCATING_FINISHES:
        choice.finish_reason = "length"
    used = usage_of(completion.usage)
    if choice.message is not None and used.output_tokens and choice.message.get("content") is None:
        choice.message["content"] = ""  # the model has spoken, and the server kept nothing of it
    if choice.message is None:
        reply = _text_reply(choice, endpoint)
    else:
        reply = _chat_reply(choice, choice.message, endpoint)
    reply.finish_reason = choice.finish_reason
    reply.logprobs = with_prompt(choice.prompt_logprobs, logprobs_of(choice.logprobs))
    reply.usage = used
    reply.tokens = tokens_of(choice.token_ids, completion.prompt_token_ids, choice.logprobs)
    reply.drafts = drafts_of(completion.metrics)
    reply.model = text_or_none(completion.model)
    stopped_by = choice.stop_reason
    if stopped_by is None:
        stopped_by = choice.matched_stop
    if isinstance(stopped_by, str) and reply.raw_message is not None:
        reply.raw_message["stop_reason"] = stopped_by
    return reply


async def read_stream(
    events: AsyncIterator[bytes], endpoint: EndpointIdentity, hear: HearPiece | None = None
) -> Reply:
    """Put the pieces of a stream together. Raises TransportError for a stream that ends early, and errors sent inside
    it."""
    whole = Completion()
    message: Row = {"role": "assistant"}
    calls: dict[int, Row] = {}
    done = False
    async for data in events:
        if data == b"[DONE]":
            done = True
            continue
        _merge_chunk(whole, message, calls, _read_chunk(data, endpoint), hear)
    if not whole.choices or (not done and whole.choices[0].finish_reason is None):
        raise TransportError(f"{endpoint.address} ended its stream in the middle of the reply.")
    choice = whole.choices[0]
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    if choice.text is None:
        choice.message = {"content": None, **message}
    return reply_of(whole, endpoint)


def _chat_reply(choice: ChatChoice, message: Row, endpoint: EndpointIdentity) -> Reply:
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    calls, refusal = message.get("tool_calls") or None, message.get("refusal")
    text, thought = message.get("content"), None
    if isinstance(text, list):
        text, thought = _texts_and_thoughts(text)
    if text is not None and not isinstance(text, str):
        raise ServerError(f"{endpoint.address} answered with content that is not text.", status=200)
    has_content = (
        text is not None or reasoning or calls or refusal or choice.finish_reason in ("length", "content_filter")
    )
    if not has_content:
        raise ServerError(f"{endpoint.address} answered with a message that has no content.", status=200)
    return Reply(
        text=text or text_or_none(refusal) or "",
        reasoning=reasoning if isinstance(reasoning, str) else thought,
        tool_calls=calls if isinstance(calls, list) else None,
        raw_message=message,
    )


def _text_reply(choice: ChatChoice, endpoint: EndpointIdentity) -> Reply:
    if choice.text is None and choice.finish_reason != "length":
        raise ServerError(
            f"{endpoint.address} answered with a choice that has neither text nor message.", status=200
        )
    text = choice.text or ""
    return Reply(text=text, raw_message={"role": "assistant", "content": text})


def _texts_and_thoughts(content: list[Any]) -> tuple[str | None, str | None]:
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content:
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("type") == "thinking":
            inner = part.get("thinking")
            if not isinstance(inner, str):
                inner, _ = _texts_and_thoughts(inner or [])
            thoughts.append(inner or "")
    text = "".join(texts) if texts else None
    return text, "".join(thoughts) or None


def _read_chunk(data: bytes, endpoint: EndpointIdentity) -> Row:
    try:
        value = msgspec.json.decode(data, type=Row)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServerError(
            f"{endpoint.address} sent an event that is not a JSON object: {error}.", status=200
        ) from error
    if failure := value.get("error"):
        raise error_for(_status_in(failure), refusal_of(value), endpoint)
    return value


def _merge_chunk(
    whole: Completion, message: Row, calls: dict[int, Row], chunk: Row, hear: HearPiece | None
) -> None:
    whole.model = chunk.get("model") or whole.model
    whole.usage = chunk.get("usage") or whole.usage
    whole.metrics = chunk.get("metrics") or whole.metrics
    whole.prompt_token_ids = chunk.get("prompt_token_ids") or whole.prompt_token_ids
    for piece in chunk.get("choices") or ():
        if piece.get("index", 0) != 0:
            continue
        if not whole.choices:
            whole.choices = [ChatChoice()]
        choice = whole.choices[0]
        for name in ("finish_reason", "stop_reason", "matched_stop"):
            if piece.get(name) is not None:
                setattr(choice, name, piece[name])
        if isinstance(text := piece.get("text"), str):
            choice.text = (choice.text or "") + text
        if isinstance(ids := piece.get("token_ids"), list):
            choice.token_ids = [*(choice.token_ids or ()), *ids]
        choice.logprobs = _joined_logprobs(choice.logprobs, piece.get("logprobs"))
        delta = piece.get("delta") or {}
        if isinstance(parts := delta.get("content"), list):  # Mistral's, where the model thinks
            content, thought = _texts_and_thoughts(parts)
            delta = {**delta, "content": content, "reasoning": thought or delta.get("reasoning")}
        if hear is not None:
            _tell_text(hear, piece.get("text") or delta.get("content"), delta)
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            if isinstance(text := delta.get(name), str):
                message[name] = (message.get(name) or "") + text
        for call in delta.get("tool_calls") or ():
            number, function = _merge_call(calls, call), call.get("function") or {}
            if hear is not None:
                fields: Row = {name: function.get(name) or "" for name in ("name", "arguments")}
                hear(ReplyPiece(call=number, call_id=call.get("id") or "", **fields))


def _tell_text(hear: HearPiece, text: Any, delta: Row) -> None:
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        hear(ReplyPiece(reasoning=reasoning))
    if isinstance(text, str) and text:
        hear(ReplyPiece(text=text))


def _merge_call(calls: dict[int, Row], piece: Row) -> int:
    """Add a part to its call; return the number of that."""
    empty: Row = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    index = piece.get("index")
    if not isinstance(index, int):  # servers that send whole calls leave it out: an id begins a new one
        if piece.get("id") or not calls:
            index = len(calls)
        else:
            index = max(calls)
    call = calls.setdefault(index, empty)
    call["id"] = piece.get("id") or call["id"]
    function = piece.get("function") or {}
    for name in ("name", "arguments"):
        call["function"][name] += function.get(name) or ""
    return index


def _joined_logprobs(old: Any, new: Any) -> Any:
    if not isinstance(new, dict):
        return old
    if not isinstance(old, dict):
        return new
    joined = dict(old)
    for name, value in new.items():
        if isinstance(value, list):
            joined[name] = [*(joined.get(name) or []), *value]
    return joined


def _status_in(error: Any) -> int:
    code = member_of(error, "code")
    if isinstance(code, str) and code.isdecimal():
        code = int(code[:4])
    if isinstance(code, int) and 400 <= code < 600:
        return code
    return 500
