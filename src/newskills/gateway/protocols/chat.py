# SPDX-License-Identifier: Apache-2.0
"""OpenAI Chat Completions. https://platform.openai.com/docs/api-reference/chat."""

from __future__ import annotations

from typing import Any

import msgspec

from newskills.base.records import Logprobs, Message, Reply, Row, Usage
from newskills.gateway import shapes
from newskills.gateway.form import (
    GatewayProblem,
    ProgramRequest,
    ReplyHead,
    ReplyStream,
    Served,
    ToolChoice,
    argument_text,
    bad_request,
    encode_event,
    name_of,
)
from newskills.gateway.streams import BlockStream, ReplyBlock

ROLES = {"developer": "system", "function": "tool"}
ERROR_TYPES = {
    "authentication": "authentication_error",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "rate": "rate_limit_error",
    "overloaded": "server_error",
    "server": "server_error",
}
CODES = {"context": "context_length_exceeded", "rate": "rate_limit_exceeded", "not_found": "model_not_found"}
PARTS = frozenset({"text", "image_url", "input_audio", "audio_url", "video_url"})
CHUNK = "chat.completion.chunk"
DONE = b"data: [DONE]\n\n"


class ChatProtocol:
    """Fits `ProgramProtocol`."""

    name = "chat"
    ping = b": wait\n\n"

    def read(self, body: Row, model: str, stream: bool) -> ProgramRequest:
        if body.get("n") not in (None, 1):
            raise bad_request("n: this gateway gives one reply to a request.")
        request = ProgramRequest(
            messages=[],
            model=shapes.read_text(body.get("model"), "model"),
            stop=shapes.read_texts(body.get("stop"), "stop"),
            response_format=shapes.read_row(body.get("response_format"), "response_format") or None,
            max_tokens=shapes.read_whole(
                body.get("max_completion_tokens") or body.get("max_tokens"), "max_tokens"
            ),
            temperature=shapes.read_number(body.get("temperature"), "temperature", 0, 2),
            top_p=shapes.read_number(body.get("top_p"), "top_p", 0, 1) or None,
            seed=shapes.read_seed(body.get("seed"), "seed"),
            effort=shapes.read_text(body.get("reasoning_effort"), "reasoning_effort") or None,
            stream=body.get("stream") is True,
            choice=_read_tool_choice(body.get("tool_choice"), body.get("parallel_tool_calls")),
            wire={
                "usage": shapes.read_row(body.get("stream_options"), "stream_options").get("include_usage")
                is True,
                "logprobs": body.get("logprobs") is True,
            },
        )
        if request.response_format == {"type": "text"}:
            request.response_format = None
        request.messages = [_read_message(item) for item in shapes.read_rows(body.get("messages"), "messages")]
        if not request.messages:
            raise bad_request("messages: at least one is needed.")
        for number, offered in enumerate(shapes.read_rows(body.get("tools"), "tools")):
            if offered.get("type", "function") != "function":
                request.note(f"dropped a tool of type {str(offered.get('type'))[:100]}")
                continue
            function = shapes.read_row(offered.get("function"), f"tools[{number}].function")
            if not shapes.read_text(function.get("name"), f"tools[{number}].function.name"):
                raise bad_request(f"tools[{number}] has no name.")
            request.tools.append(offered)
        if body.get("functions"):
            request.note("dropped `functions`, which `tools` have replaced")
        shapes.check_choice(request)
        return request

    def answer(self, served: Served) -> Row:
        reply = served.reply
        message: Row = {"role": "assistant", "content": reply.text}
        if reply.tool_calls:
            message["tool_calls"] = [
                {"id": call.get("id"), "type": "function", "function": _function_call(call)}
                for call in reply.tool_calls
            ]
        if reply.reasoning is not None:
            message["reasoning_content"] = reply.reasoning
        choice: Row = {"index": 0, "message": message, "finish_reason": finish_reason(reply)}
        if served.request.wire.get("logprobs"):
            choice["logprobs"] = _format_logprobs(reply.logprobs)
        return {**_chunk_head(served, "chat.completion"), "choices": [choice], "usage": usage_counts(reply.usage)}

    def stream(self, head: ReplyHead) -> ReplyStream:
        return ChatStream(head)

    def error(self, problem: GatewayProblem) -> Row:
        return openai_error(problem)

    def count(self, tokens: int) -> Row:
        return {"input_tokens": tokens}


class ChatStream(BlockStream):
    """A reply as chunks."""

    def beginning(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def opening(self, block: ReplyBlock) -> bytes:
        if block.kind != "call":
            return b""
        identity = {"index": block.call, "id": block.call_id, "type": "function"}
        return self._chunk({"tool_calls": [{**identity, "function": {"name": block.name, "arguments": ""}}]})

    def growth(self, block: ReplyBlock, text: str) -> bytes:
        if block.kind == "call":
            return self._chunk({"tool_calls": [{"index": block.call, "function": {"arguments": text}}]})
        if block.kind == "reasoning":
            return self._chunk({"reasoning_content": text})
        return self._chunk({"content": text})

    def ending(self, reply: Reply) -> bytes:
        wire = self.head.request.wire
        more: Row = {}
        if wire.get("logprobs"):
            more["logprobs"] = _format_logprobs(reply.logprobs)
        data = self._chunk({}, finish_reason(reply), **more)
        if wire.get("usage"):
            data += encode_event(
                {**_chunk_head(self.head, CHUNK), "choices": [], "usage": usage_counts(reply.usage)}
            )
        return data + DONE

    def failure(self, problem: GatewayProblem, *, begun: bool) -> bytes:
        return encode_event(openai_error(problem))

    def _chunk(self, delta: Row, finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
        value = {**_chunk_head(self.head, CHUNK), "choices": [choice]}
        if self.head.request.wire.get("usage"):
            value["usage"] = None
        return encode_event(value)


def openai_error(problem: GatewayProblem) -> Row:
    """Return the body of an error, as both protocols of OpenAI have it."""
    kind = ERROR_TYPES.get(problem.kind, "invalid_request_error")
    code = problem.code or CODES.get(problem.kind)
    return {"error": {"message": problem.message, "type": kind, "param": None, "code": code}}


def choice_in_a_word(value: Any, parallel: Any) -> ToolChoice | None:
    """Return the choice of tools that one word or nothing says, as both protocols of OpenAI have it; else None."""
    together = parallel if isinstance(parallel, bool) else None
    if value in (None, "auto"):
        return ToolChoice(parallel=together)
    if value == "none":
        return ToolChoice(mode="none", parallel=together)
    if value == "required":
        return ToolChoice(mode="any", parallel=together)
    return None


def named_choice(name: str, parallel: Any) -> ToolChoice:
    """Return the choice of one tool."""
    return ToolChoice(mode="any", name=name, parallel=parallel if isinstance(parallel, bool) else None)


def _function_call(call: Row) -> Row:
    return {"name": name_of(call), "arguments": argument_text(call)}


def finish_reason(reply: Reply) -> str:
    """Return why the reply ended, in the protocol's words."""
    if reply.finish_reason in ("length", "content_filter", "tool_calls"):
        return reply.finish_reason
    if reply.tool_calls:
        return "tool_calls"
    return "stop"


def usage_counts(counts: Usage) -> Row:
    """Return token counts; 0 where the backend did not report them."""
    read, written = counts.input_tokens or 0, counts.output_tokens or 0
    value: Row = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    if counts.cached_tokens is not None:
        value["prompt_tokens_details"] = {"cached_tokens": counts.cached_tokens}
    if counts.reasoning_tokens is not None:
        value["completion_tokens_details"] = {"reasoning_tokens": counts.reasoning_tokens}
    return value


def _chunk_head(served: ReplyHead, kind: str) -> Row:
    return {
        "id": f"chatcmpl-{served.id}",
        "object": kind,
        "created": served.created,
        "model": served.request.model,
    }


def _read_message(item: Row) -> Message:
    role = shapes.read_text(item.get("role"), "a message's role")
    try:
        message = msgspec.convert({**item, "role": ROLES.get(role, role)}, Message)
    except msgspec.ValidationError as error:
        raise bad_request(f"messages: {error}") from error
    message.reasoning_content = (
        message.reasoning_content or shapes.read_text(item.get("reasoning"), "reasoning") or None
    )
    if isinstance(message.content, list):
        for part in message.content:
            if shapes.read_text(part.get("type"), "a part's type") not in PARTS:
                raise bad_request(f"messages: parts of type '{str(part.get('type'))[:100]}' are not supported.")
    elif message.content is None and isinstance(item.get("refusal"), str):
        message.content = item["refusal"]
    return message


def _read_tool_choice(value: Any, parallel: Any) -> ToolChoice:
    if (choice := choice_in_a_word(value, parallel)) is not None:
        return choice
    named = shapes.read_row(value, "tool_choice")
    function = shapes.read_row(named.get("function"), "tool_choice.function")
    if named.get("type") == "function" and isinstance(function.get("name"), str):
        return named_choice(function["name"], parallel)
    raise bad_request(f"tool_choice: '{str(named.get('type'))[:100]}' is not supported.")


def _format_logprobs(logprobs: Logprobs | None) -> Row | None:
    if logprobs is None:
        return None
    tops = logprobs.top_logprobs or [{} for _ in logprobs.tokens]
    return {
        "content": [
            {
                "token": token,
                "logprob": value,
                "bytes": list(token.encode("utf-8", "replace")),
                "top_logprobs": [
                    {"token": other, "logprob": chance, "bytes": list(other.encode("utf-8", "replace"))}
                    for other, chance in top.items()
                ],
            }
            for token, value, top in zip(logprobs.tokens, logprobs.logprobs, tops, strict=False)
        ],
        "refusal": None,
    }
