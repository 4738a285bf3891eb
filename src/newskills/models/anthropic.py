# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Messages API. https://docs.claude.com/en/api/messages (version 2023-06-01).

The API knows no seed: runs with different seeds are independent samples all the same. `top_p` is sent only where
it is not the general default, since newer models refuse it beside a temperature.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from newskills.base.callbacks import HearPiece
from newskills.base.errors import ConfigError, ServerError, TransportError
from newskills.base.records import CacheMark, Inference, Message, Reply, ReplyPiece, Request, Row, Usage
from newskills.models.config import ServerConfig
from newskills.models.decode import call_arguments, decode_body, first_count, image_url_of, text_or_none, tool_call
from newskills.models.errors import EndpointIdentity, error_for, refusal_of
from newskills.models.kinds import MODELS
from newskills.models.parameters import refuse_both
from newskills.models.wire import BodyCache, HttpModel, base_url_of, is_json, require_key, require_model

URL = "https://api.anthropic.com/v1"
VERSION = "2023-06-01"
PATH = "/messages"
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
STREAM_STATUS = {"overloaded_error": 529, "rate_limit_error": 429, "invalid_request_error": 400}
ADAPTIVE = (4, 6)
"""From this version on models size their thinking by effort; earlier ones take a budget in tokens."""
NO_SAMPLING = (4, 7)
"""From this version on models refuse temperature, top_p and top_k."""
BUDGETS = {"low": 2048, "medium": 8192, "high": 24576}
ONLY_ADAPTIVE = NO_SAMPLING
"""From this version on models refuse a budget of tokens, and some of them to think not at all."""
LEAST_BUDGET = 1024
SYSTEM = ("system", "developer")
UNMARKED = frozenset({"thinking", "redacted_thinking"})
"""Blocks that the cache takes no mark at."""
DYNAMIC = frozenset({"messages", "system", "tools", "stop_sequences", "output_config", "stream"})


class AnthropicResponse(Struct):
    content: list[Row]
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Any = None
    model: Any = None


_answers = msgspec.json.Decoder(AnthropicResponse)


class AnthropicModel(HttpModel):
    """Chat only. `complete` raises the HttpError family, and ConfigError for what the API has no word for."""

    def __init__(self, endpoint: EndpointIdentity, *, concurrency: int, environ: Mapping[str, str]) -> None:
        headers = (("x-api-key", endpoint.key or ""), ("anthropic-version", VERSION))
        super().__init__(endpoint, concurrency=concurrency, environ=environ, headers=headers)
        self._bodies = BodyCache(DYNAMIC)

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Raise ConfigError for a setting that the API cannot honour."""
        check_inference(self.name, inference)

    async def complete(self, request: Request) -> Reply:
        started = time.time()
        request, hear = self._as_heard(request)
        inference = request.inference
        path, body = self.encoded(request)
        if inference.stream:
            reply = reply_of(await self._stream(body, inference.timeout, hear))
        else:
            reply = self.decoded(request, await self._post(path, body, inference.timeout))
        reply.started, reply.ended = started, time.time()
        return reply

    def encoded(self, request: Request) -> tuple[str, bytes]:
        """Return the path and the body of `request`. Raises ConfigError."""
        inference = request.inference
        if not self._bodies.knows(inference):
            check_inference(self.name, inference)
            self._bodies.put(inference, constant_keys(self.name, inference))
        return PATH, self._bodies.body(request, request_keys(self.name, request))

    def decoded(self, request: Request, body: bytes) -> Reply:
        """Return the reply to `request` that `body` holds. Raises ModelError."""
        return reply_of(decode_body(body, _answers, AnthropicResponse, self.endpoint.address))

    async def _stream(self, body: bytes, timeout: float, hear: HearPiece | None) -> AnthropicResponse:
        async with self._open_stream(PATH, body, timeout) as response:
            if is_json(response.headers):
                return decode_body(await response.read(), _answers, AnthropicResponse, self.endpoint.address)
            answer, done = AnthropicResponse(content=[]), False
            async for data in response.events():
                event = _read_event(data, self.endpoint)
                done = _merge_event(answer, event, self.endpoint) or done
                if hear is not None:
                    _report_event(hear, answer, event)
        if not done:
            raise TransportError(f"{self.endpoint.address} ended its stream in the middle of the reply.")
        for block in answer.content:
            if isinstance(arguments := block.pop("partial_json", None), str):
                block["input"] = call_arguments(arguments)
        return answer


def make(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> AnthropicModel:
    """Return the model for Anthropic's API. Raises AuthError without `ANTHROPIC_API_KEY`."""
    key, source = require_key(config, environ, *MODELS.properties(config.server_type).keys)
    endpoint = EndpointIdentity(base_url_of(config, URL), require_model(config), key, source)
    return AnthropicModel(endpoint, concurrency=concurrency, environ=environ)


def check_inference(model: str, inference: Inference) -> None:
    """Raise ConfigError naming the setting that the API cannot honour, and what to set instead."""
    if inference.endpoint_type != "chat":
        raise ConfigError("anthropic has only a chat endpoint.", hint="Set ++inference.endpoint_type=chat.")
    if inference.tokens_to_generate is None:
        raise ConfigError("anthropic needs a limit on new tokens.", hint="Set ++inference.tokens_to_generate=N.")
    neutral = Inference()
    for name in ("min_p", "repetition_penalty", "top_logprobs"):
        if getattr(inference, name) != getattr(neutral, name):
            raise ConfigError(
                f"anthropic does not accept inference.{name}.", hint=f"Leave out ++inference.{name}."
            )
    thinking = _has_thinking(thinking_keys("anthropic", model, inference))
    for name in ("temperature", "top_p", "top_k"):
        if getattr(inference, name) != getattr(neutral, name) and (
            thinking or claude_version(model) >= NO_SAMPLING
        ):
            why = "with thinking" if thinking else f"for {model}"
            raise ConfigError(
                f"anthropic does not accept inference.{name} {why}.", hint=f"Leave out ++inference.{name}."
            )


def claude_version(model: str) -> tuple[int, int]:
    """Return the version of a model, (4, 5) of `claude-haiku-4-5-20251001`; (0, 0) for names of the first scheme,
    as `claude-3-opus`."""
    match = re.search(r"claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)", model)
    if match is None:
        return 0, 0
    return int(match[1]), int(match[2] or 0)


def constant_keys(model: str, inference: Inference) -> Row:
    """Return the body keys for `inference`, without those of a single request."""
    body: Row = {"model": model, "max_tokens": inference.tokens_to_generate}
    keys = thinking_keys("anthropic", model, inference)
    if keys:
        body["thinking"] = keys["thinking"]
    if not _has_thinking(keys) and claude_version(model) < NO_SAMPLING:
        if inference.temperature is not None:
            body["temperature"] = inference.temperature
        if inference.top_p not in (Inference().top_p, None):
            body["top_p"] = inference.top_p
        if (inference.top_k or 0) > 0:
            body["top_k"] = inference.top_k
    if inference.stream:
        body["stream"] = True
    return body


def request_keys(model: str, request: Request) -> Row:
    """Return the body keys that belong to this request alone. System messages become the system prompt."""
    messages = request.messages or []
    marks: list[CacheMark] = []
    if request.inference.cache_prompt is None and request.cache_marks is not UNSET:
        marks = request.cache_marks
    of_message: dict[int | None, list[CacheMark]] = {}
    for mark in marks:
        of_message.setdefault(mark.message, []).append(mark)
    blocks = [_blocks_of(message, of_message.get(at, ())) for at, message in enumerate(messages)]
    body: Row = {"messages": _joined_turns(messages, blocks)}
    system = [block for m, own in zip(messages, blocks, strict=True) if m.role in SYSTEM for block in own]
    if system:
        body["system"] = system
    if request.stop:
        body["stop_sequences"] = request.stop
    if request.tools:
        body["tools"] = [_tool_declaration(tool.get("function", tool)) for tool in request.tools]
        for mark in of_message.get(None, ()):
            _mark_last(body["tools"], mark.control, mark.end)
    if request.inference.cache_prompt == "auto":
        _mark_prefix(body)
    output: Row = {}
    if request.inference.reasoning_effort is not None and claude_version(model) >= ADAPTIVE:
        output["effort"] = request.inference.reasoning_effort
    if request.response_format is not None:
        output["format"] = _output_format(request.response_format)
    if output:
        body["output_config"] = output
    return body


def thinking_keys(server_type: str, model: str, inference: Inference) -> Row:
    """Return the keys of a request body that say how much may be thought, as `parameters.thinking_keys` does. Raises
    ConfigError for what the model does not take."""
    effort, budget = inference.reasoning_effort, inference.thinking_budget
    limit = inference.tokens_to_generate or 0
    if budget is None:
        if effort is None:
            return {}
        if claude_version(model) >= ADAPTIVE:
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
        if effort not in BUDGETS:
            raise ConfigError(f"{model} has no reasoning effort '{effort}'; choose one of {', '.join(BUDGETS)}.")
        budget = min(BUDGETS[effort], max(LEAST_BUDGET, limit - 1))
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    refuse_both(inference)
    if claude_version(model) >= ONLY_ADAPTIVE:
        raise ConfigError(
            f"{model} sizes its thinking itself and takes no inference.thinking_budget.",
            hint="Set ++inference.reasoning_effort=LEVEL instead, or neither.",
        )
    if budget == "none":
        return {"thinking": {"type": "disabled"}}
    if not LEAST_BUDGET <= budget < limit:
        raise ConfigError(
            f"anthropic takes an inference.thinking_budget from {LEAST_BUDGET:,} to below "
            f"inference.tokens_to_generate ({limit:,}), which holds thinking and answer, not {budget:,}."
        )
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def tool_choice_keys(mode: str, name: str, parallel: bool | None, responses: bool) -> Row:
    """Return the keys of a request body that say which tools may be called, as `parameters.tool_choice_keys` does."""
    if mode == "auto" and parallel is None:
        return {}
    choice: Row = {"type": mode}
    if name:
        choice = {"type": "tool", "name": name}
    if parallel is not None and mode != "none":
        choice["disable_parallel_tool_use"] = not parallel
    return {"tool_choice": choice}


def wire_turns(messages: list[Message]) -> list[Row]:
    """Convert messages to content blocks; results of tools are a user's turn, and neighbours of one role are
    joined."""
    return _joined_turns(messages, [_blocks_of(message) for message in messages])


def _joined_turns(messages: list[Message], blocks: list[list[Row]]) -> list[Row]:
    joined: list[Row] = []
    for message, own in zip(messages, blocks, strict=True):
        if message.role in SYSTEM:
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += own
        else:
            joined.append({"role": role, "content": own})
    return joined


def reply_of(answer: AnthropicResponse) -> Reply:
    """Convert the answer to a reply; `raw_message` keeps the blocks, since thinking must be sent back with its
    signature beside tool results."""
    texts = [block.get("text") or "" for block in answer.content if block.get("type") == "text"]
    thoughts = [block.get("thinking") or "" for block in answer.content if block.get("type") == "thinking"]
    calls = [
        tool_call(block.get("id") or "", block.get("name") or "", msgspec.json.encode(block.get("input")).decode())
        for block in answer.content
        if block.get("type") == "tool_use"
    ]
    # Calls are blocks of the content already: a raw message must not hold them twice.
    raw: Row = {"role": "assistant", "content": answer.content}
    if answer.stop_sequence is not None:
        raw["stop_reason"] = answer.stop_sequence
    return Reply(
        text="".join(texts),
        reasoning="".join(thoughts) or None,
        finish_reason=FINISHES.get(answer.stop_reason or "", answer.stop_reason),
        usage=_read_usage(answer.usage),
        tool_calls=calls or None,
        model=text_or_none(answer.model),
        raw_message=raw,
    )


def _has_thinking(keys: Row) -> bool:
    return bool(keys) and keys["thinking"]["type"] != "disabled"


def _mark_prefix(body: Row) -> None:
    """Mark where a beginning ends that other requests share: instructions with tools, and the turns before the last
    one of the user (few-shot examples, or what an agent has done). Marked blocks are copies: messages stay as they
    are."""
    turns_before = body["messages"][:-1]
    for blocks in (body.get("system") or body.get("tools"), turns_before and turns_before[-1]["content"]):
        if blocks:
            _mark_last(blocks, {"type": "ephemeral"})


def _mark_last(blocks: list[Row], control: Row, count: int | None = None) -> None:
    """Mark the last of the first `count` blocks, all where it is None."""
    last = blocks[:count][-1]
    if last.get("type") not in UNMARKED and last.get("text") != "":
        blocks[len(blocks[:count]) - 1] = {**last, "cache_control": control}


def _read_usage(value: Any) -> Usage:
    plain = first_count(value, "input_tokens")
    cached = first_count(value, "cache_read_input_tokens")
    written = first_count(value, "cache_creation_input_tokens")
    total = None
    if plain is not None:
        total = plain + (cached or 0) + (written or 0)
    return Usage(
        input_tokens=total,
        output_tokens=first_count(value, "output_tokens"),
        cached_tokens=cached,
        cache_written_tokens=written,
    )


def _blocks_of(message: Message, marks: Sequence[CacheMark] = ()) -> list[Row]:
    """Return a message as blocks. A mark within its text ends a block there."""
    content = message.content or []
    inner = {mark.end: mark.control for mark in marks if mark.end is not None}
    if isinstance(content, str):
        ends = [*sorted(end for end in inner if 0 < end < len(content)), len(content)]
        blocks: list[Row] = [{"type": "text", "text": content[a:b]} for a, b in pairwise([0, *ends])]
    else:
        ends = list(range(1, len(content) + 1))
        blocks = [_block_of_part(part) for part in content]
    for size, end in enumerate(ends, 1):
        if end in inner:
            _mark_last(blocks, inner[end], size)
    if message.role == "tool":
        blocks = [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks}]
    if not any(block.get("type") == "tool_use" for block in blocks):
        blocks += [_call_block(call) for call in message.tool_calls or ()]
    for mark in marks:
        if mark.end is None and blocks:
            _mark_last(blocks, mark.control)
    return blocks


def _call_block(call: Row) -> Row:
    function = call.get("function", {})
    arguments = call_arguments(function.get("arguments") or "")
    return {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": arguments}


def _block_of_part(part: Row) -> Row:
    if part.get("type") != "image_url":
        return part
    url = str(image_url_of(part))
    head, _, data = url.partition(";base64,")
    if head.startswith("data:") and data:
        return {"type": "image", "source": {"type": "base64", "media_type": head[5:], "data": data}}
    return {"type": "image", "source": {"type": "url", "url": url}}


def _tool_declaration(function: Row) -> Row:
    schema = function.get("parameters") or function.get("input_schema") or {"type": "object", "properties": {}}
    tool: Row = {"name": function.get("name")}
    if function.get("description"):
        tool["description"] = function["description"]
    return {**tool, "input_schema": schema}


def _output_format(response_format: Row) -> Row:
    schema = response_format.get("json_schema")
    if response_format.get("type") != "json_schema" or not isinstance(schema, dict):
        raise ConfigError(
            f"anthropic does not accept response format '{response_format.get('type')}', only json_schema."
        )
    return {"type": "json_schema", "schema": schema.get("schema")}


def _read_event(data: bytes, endpoint: EndpointIdentity) -> Row:
    try:
        return msgspec.json.decode(data, type=Row)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServerError(
            f"{endpoint.address} sent an event that is not a JSON object: {error}.", status=200
        ) from error


def _merge_event(answer: AnthropicResponse, event: Row, endpoint: EndpointIdentity) -> bool:
    """Add an event to `answer`; return True for the last one."""
    kind = event.get("type")
    if kind == "error":
        refusal = refusal_of(event)
        raise error_for(STREAM_STATUS.get(refusal.code, 500), refusal, endpoint)
    if kind == "message_start":
        message = event.get("message") or {}
        answer.model, answer.usage = message.get("model"), message.get("usage")
    elif kind == "content_block_start":
        answer.content.append(dict(event.get("content_block") or {}))
    elif kind == "content_block_delta" and answer.content:
        block, delta = answer.content[-1], event.get("delta") or {}
        for name in ("text", "thinking", "signature", "partial_json"):
            if isinstance(piece := delta.get(name), str):
                block[name] = (block.get(name) or "") + piece
    elif kind == "message_delta":
        delta = event.get("delta") or {}
        answer.stop_reason, answer.stop_sequence = delta.get("stop_reason"), delta.get("stop_sequence")
        answer.usage = {**(answer.usage or {}), **(event.get("usage") or {})}
    return kind == "message_stop"


def _report_event(hear: HearPiece, answer: AnthropicResponse, event: Row) -> None:
    """Tell a listener of the part of a reply that an event has added to `answer`."""
    kind = event.get("type")
    if kind == "message_start":
        hear(ReplyPiece(usage=_read_usage(answer.usage)))
    if not answer.content or kind not in ("content_block_start", "content_block_delta"):
        return
    block = answer.content[-1]
    number = sum(other.get("type") == "tool_use" for other in answer.content) - 1
    if kind == "content_block_delta":
        delta = event.get("delta") or {}
        if arguments := delta.get("partial_json"):
            hear(ReplyPiece(call=number, arguments=arguments))
    else:
        delta = {name: block.get(name) for name in ("text", "thinking")}
        if block.get("type") == "redacted_thinking":
            hear(ReplyPiece(native=block))
        elif block.get("type") == "tool_use":
            hear(ReplyPiece(call=number, call_id=block.get("id") or "", name=block.get("name") or ""))
    if text := delta.get("text"):
        hear(ReplyPiece(text=text))
    if thought := delta.get("thinking"):
        hear(ReplyPiece(reasoning=thought))
    if delta.get("signature"):
        hear(ReplyPiece(native=delta))
