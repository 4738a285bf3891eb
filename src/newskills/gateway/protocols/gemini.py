# SPDX-License-Identifier: Apache-2.0
"""Gemini generateContent. https://ai.google.dev/api/generate-content."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cache
from typing import Any

from newskills.base.records import Logprobs, Message, Reply, ReplyPiece, Row, Usage
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

STATUSES = {
    "authentication": "UNAUTHENTICATED",
    "permission": "PERMISSION_DENIED",
    "not_found": "NOT_FOUND",
    "rate": "RESOURCE_EXHAUSTED",
    "overloaded": "UNAVAILABLE",
    "server": "INTERNAL",
}
FINISHES = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
SIGNED = ("thoughtSignature", "functionCall")
"""Keys of parts that only a backend of this protocol writes."""
AUTOMATIC = ("AUTO", "VALIDATED", "MODE_UNSPECIFIED")
DECLARATIONS = ("functionDeclarations", "function_declarations")
DEEPEST = 64
"""Levels of a schema that is converted."""


class GeminiProtocol:
    """Fits `ProgramProtocol`."""

    name = "gemini"
    ping = encode_event({"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0}]})
    """The official client takes no comments in a stream."""

    def read(self, body: Row, model: str, stream: bool) -> ProgramRequest:
        config = _get_field(body, "generationConfig") or {}
        config = shapes.read_row(config, "generationConfig")
        if config.get("candidateCount") not in (None, 1):
            raise bad_request("generationConfig.candidateCount: this gateway gives one reply to a request.")
        thinking = shapes.read_row(config.get("thinkingConfig"), "thinkingConfig")
        request = ProgramRequest(
            messages=[],
            model=model,
            stream=stream,
            stop=shapes.read_texts(config.get("stopSequences"), "stopSequences"),
            max_tokens=shapes.read_whole(config.get("maxOutputTokens"), "maxOutputTokens"),
            temperature=shapes.read_number(config.get("temperature"), "temperature", 0, 2),
            top_p=shapes.read_number(config.get("topP"), "topP", 0, 1) or None,
            seed=shapes.read_seed(config.get("seed"), "seed"),
            effort=shapes.read_text(thinking.get("thinkingLevel"), "thinkingLevel").lower() or None,
            response_format=_response_format(config),
        )
        request.choice, allowed = _read_tool_choice(body)
        request.messages = _read_messages(body, request)
        for offered in shapes.read_rows(body.get("tools"), "tools"):
            for key, value in offered.items():
                if key in DECLARATIONS:
                    for number, declaration in enumerate(shapes.read_rows(value, key)):
                        request.tools.append(_read_tool(declaration, f"{key}[{number}]"))
                else:
                    request.note(f"dropped a tool of type {key[:100]}")
        if allowed:
            request.tools = [tool for tool in request.tools if tool["function"]["name"] in allowed]
        shapes.check_choice(request)
        return request

    def answer(self, served: Served) -> Row:
        parts = list(_reply_parts(served.reply))
        return _response_body(served, parts or [{"text": ""}], served.reply.usage, served.reply)

    def stream(self, head: ReplyHead) -> ReplyStream:
        return GeminiStream(head, self)

    def error(self, problem: GatewayProblem) -> Row:
        message = problem.message
        if problem.kind == "context":
            message = f"The input token count exceeds the maximum number of tokens allowed. {message}"
        return {
            "error": {
                "code": problem.status,
                "message": message,
                "status": STATUSES.get(problem.kind, "INVALID_ARGUMENT"),
            }
        }

    def count(self, tokens: int) -> Row:
        return {"totalTokens": tokens}


class GeminiStream(BlockStream):
    """A reply as parts. Calls are whole in this protocol."""

    def __init__(self, head: ReplyHead, protocol: GeminiProtocol) -> None:
        super().__init__(head)
        self._protocol = protocol

    def growth(self, block: ReplyBlock, text: str) -> bytes:
        if block.kind == "call":
            return b""
        part: Row = {"text": text}
        if block.kind == "reasoning":
            part["thought"] = True
        return self._event(part)

    def closing(self, block: ReplyBlock, reply: Reply | None) -> bytes:
        if block.kind != "call":
            return b""
        arguments = arguments_of({"function": {"arguments": block.content}})
        return self._event({"functionCall": {"id": block.call_id, "name": block.name, "args": arguments}})

    def ending(self, reply: Reply) -> bytes:
        return encode_event(_response_body(self.head, [{"text": ""}], reply.usage, reply))

    def failure(self, problem: GatewayProblem, *, begun: bool) -> bytes:
        return encode_event(self._protocol.error(problem))

    def native(self, piece: ReplyPiece) -> bool:
        part = piece.native or {}
        if not any(key in part for key in SIGNED):
            return False
        self.close()
        self.next_number()
        self.write(self._event(part))
        return True

    def thoughts(self, reply: Reply) -> Iterator[ReplyPiece]:
        raw = _signed_parts(reply)
        if not raw:
            yield from super().thoughts(reply)
        calls = iter(enumerate(reply.tool_calls or ()))
        for part in raw:
            if "functionCall" in part:
                number, call = next(calls)
                fields: Row = {
                    "call_id": str(call.get("id")),
                    "name": name_of(call),
                    "arguments": argument_text(call),
                }
                yield ReplyPiece(native=part, call=number, **fields)
            elif "thoughtSignature" in part:
                yield ReplyPiece(native=part, **_text_of_part(part))
            else:
                yield ReplyPiece(**_text_of_part(part))

    def _event(self, part: Row) -> bytes:
        return encode_event(_response_body(self.head, [part], self.usage, None))


def _text_of_part(part: Row) -> Row:
    """Return the text of a part, by what it is."""
    return {"reasoning" if part.get("thought") else "text": part.get("text") or ""}


def _response_body(head: ReplyHead, parts: list[Row], used: Usage, reply: Reply | None) -> Row:
    """Return a part of a stream, or with `reply` its end, or the whole."""
    candidate: Row = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reply is not None:
        candidate["finishReason"] = FINISHES.get(reply.finish_reason or "", "STOP")
        if reply.logprobs is not None:
            candidate["logprobsResult"] = _format_logprobs(reply.logprobs)
    return {
        "candidates": [candidate],
        "usageMetadata": _usage_counts(used),
        "modelVersion": head.request.model,
        "responseId": head.id,
    }


def _reply_parts(reply: Reply) -> Iterator[Row]:
    """Yield the parts of a reply: those of the backend, where it speaks this protocol, since they carry signatures."""
    if raw := _signed_parts(reply):
        yield from raw
        return
    if reply.reasoning:
        yield {"text": reply.reasoning, "thought": True}
    if reply.text:
        yield {"text": reply.text}
    for call in reply.tool_calls or ():
        yield {"functionCall": {"id": call.get("id"), "name": name_of(call), "args": arguments_of(call)}}


def _signed_parts(reply: Reply) -> list[Row]:
    """Return the parts as the backend wrote them, where it speaks this protocol."""
    raw = (reply.raw_message or {}).get("content")
    if isinstance(raw, list) and any(key in part for part in raw for key in SIGNED):
        return raw
    return []


def _usage_counts(counts: Usage) -> Row:
    read, written = counts.input_tokens or 0, counts.output_tokens or 0
    thought = counts.reasoning_tokens or 0
    value: Row = {
        "promptTokenCount": read,
        "candidatesTokenCount": max(0, written - thought),
        "totalTokenCount": read + written,
    }
    if thought:
        value["thoughtsTokenCount"] = thought
    if counts.cached_tokens is not None:
        value["cachedContentTokenCount"] = counts.cached_tokens
    return value


def _format_logprobs(logprobs: Logprobs) -> Row:
    tops = logprobs.top_logprobs or []
    return {
        "chosenCandidates": [
            {"token": token, "logProbability": value}
            for token, value in zip(logprobs.tokens, logprobs.logprobs, strict=False)
        ],
        "topCandidates": [
            {"candidates": [{"token": token, "logProbability": value} for token, value in top.items()]}
            for top in tops
        ],
    }


def _read_messages(body: Row, request: ProgramRequest) -> list[Message]:
    messages: list[Message] = []
    if text := _read_system(_get_field(body, "systemInstruction")):
        messages.append(Message(role="system", content=text))
    calls = _Calls()
    contents = body.get("contents")
    if isinstance(contents, dict):
        contents = [contents]
    for item in shapes.read_rows(contents, "contents"):
        parts = shapes.read_rows(item.get("parts"), "a content's parts")
        if item.get("role") == "model":
            messages.append(_model_turn(parts, calls, request))
        else:
            messages += _user_turn(parts, calls)
    if not any(message.role != "system" for message in messages):
        raise bad_request("contents: at least one content is required.")
    return messages


def _read_system(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts = shapes.read_rows(shapes.read_row(value, "systemInstruction").get("parts"), "systemInstruction.parts")
    return "\n\n".join(shapes.read_text(part.get("text"), "systemInstruction: a text") for part in parts)


class _Calls:
    """Calls have no identity in most programs' histories: they are counted, and results belong to the oldest call of
    their name that has none."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[tuple[str, str]] = []

    def add(self, function_call: Row) -> Row:
        identity = function_call.get("id")
        if not isinstance(identity, str) or not identity:
            identity = f"call_{self._count}"
        self._count += 1
        name = shapes.read_text(function_call.get("name"), "functionCall.name")
        self._open.append((name, identity))
        arguments = encode_json(shapes.read_row(function_call.get("args"), "functionCall.args")).decode()
        return shapes.tool_call(identity, name, arguments)

    def answered_call_id(self, response: Row) -> str:
        """Return the identity of the call that a result belongs to."""
        identity, name = response.get("id"), response.get("name")
        for number, (called, open_identity) in enumerate(self._open):
            if open_identity == identity or (not identity and called == name):
                del self._open[number]
                return open_identity
        if isinstance(identity, str):
            return identity
        return f"call_{name}"


def _model_turn(parts: list[Row], calls: _Calls, request: ProgramRequest) -> Message:
    texts, thoughts, made = list[str](), list[str](), list[Row]()
    for part in parts:
        if (function_call := _get_field(part, "functionCall")) is not None:
            made.append(calls.add(shapes.read_row(function_call, "functionCall")))
        elif isinstance(part.get("text"), str):
            kind = thoughts if part.get("thought") is True else texts
            kind.append(part["text"])
        else:
            request.note(f"dropped a part with {', '.join(sorted(part))[:100]}")
    return Message(
        role="assistant",
        content="".join(texts),
        tool_calls=made or None,
        reasoning_content="".join(thoughts) or None,
    )


def _user_turn(parts: list[Row], calls: _Calls) -> list[Message]:
    messages, content = list[Message](), list[Row]()
    for part in parts:
        if (response := _get_field(part, "functionResponse")) is not None:
            answer = shapes.read_row(response, "functionResponse")
            identity = calls.answered_call_id(answer)
            name = shapes.read_text(answer.get("name"), "functionResponse.name")
            messages.append(
                Message(role="tool", content=_result_text(answer), tool_call_id=identity, name=name or None)
            )
        elif isinstance(part.get("text"), str):
            content.append({"type": "text", "text": part["text"]})
        elif (inline := _get_field(part, "inlineData")) is not None:
            content.append(_inline_part(shapes.read_row(inline, "inlineData")))
        elif (file := _get_field(part, "fileData")) is not None:
            content.append(
                shapes.image_part(
                    shapes.read_text(_get_field(shapes.read_row(file, "fileData"), "fileUri"), "fileUri")
                )
            )
        else:
            raise bad_request(f"A part with {', '.join(sorted(part))[:100]} is not supported.")
    if content or not messages:
        messages.append(Message(role="user", content=shapes.join_text_parts(content)))
    return messages


def _result_text(response: Row) -> str:
    """Return a result as the model reads it: a text as it is, an object as JSON."""
    value = response.get("response")
    if isinstance(value, dict) and len(value) == 1:
        only = next(iter(value.values()))
        if isinstance(only, str) and next(iter(value)) in ("output", "result"):
            return only
    if isinstance(value, str):
        return value
    return encode_json(value).decode()


def _inline_part(data: Row) -> Row:
    kind, text = (
        shapes.read_text(_get_field(data, "mimeType"), "mimeType"),
        shapes.read_text(data.get("data"), "inlineData.data"),
    )
    if kind.startswith("text/"):
        try:
            return {"type": "text", "text": base64.b64decode(text, altchars=b"-_").decode("utf-8", "replace")}
        except ValueError as error:
            raise bad_request("inlineData.data is not base64.") from error
    if not kind.startswith("image/"):
        raise bad_request(f"inlineData of type '{kind[:100]}' is not supported.")
    return shapes.image_part(f"data:{kind};base64,{text.replace('-', '+').replace('_', '/')}")


def _read_tool(declaration: Row, where: str) -> Row:
    schema = declaration.get("parametersJsonSchema") or declaration.get("parameters_json_schema")
    if schema is None and declaration.get("parameters") is not None:
        schema = _json_schema(declaration["parameters"])
    return shapes.tool_definition(declaration.get("name"), declaration.get("description"), schema, where)


def _json_schema(value: Any, depth: int = 0) -> Any:
    """Convert a schema of OpenAPI, whose types are in capitals, to a JSON schema. Raises GatewayProblem."""
    if depth > DEEPEST:
        raise bad_request("A tool's schema is too deep.")
    if isinstance(value, list):
        return [_json_schema(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    converted = {
        key: item if isinstance(item, str) else _json_schema(item, depth + 1)
        for key, item in value.items()
        if key != "nullable"
    }
    kind = converted.get("type")
    if isinstance(kind, str):
        converted["type"] = kind.lower()
        if value.get("nullable") is True:
            converted["type"] = [kind.lower(), "null"]
    return converted


def _response_format(config: Row) -> Row | None:
    if config.get("responseMimeType") != "application/json":
        return None
    schema = config.get("responseJsonSchema")
    if schema is None:
        schema = _json_schema(config.get("responseSchema"))
    if schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


def _read_tool_choice(body: Row) -> tuple[ToolChoice, list[str]]:
    """Return the choice, and the only tools that it allows (none: all)."""
    config = shapes.read_row(_get_field(body, "toolConfig"), "toolConfig")
    calling = shapes.read_row(_get_field(config, "functionCallingConfig"), "functionCallingConfig")
    mode = shapes.read_text(calling.get("mode"), "functionCallingConfig.mode").upper() or "AUTO"
    names = shapes.read_texts(_get_field(calling, "allowedFunctionNames"), "allowedFunctionNames")
    if mode == "ANY":
        only = names[0] if len(names) == 1 else ""
        return ToolChoice(mode="any", name=only), names
    if mode == "NONE":
        return ToolChoice(mode="none"), names
    if mode not in AUTOMATIC:
        raise bad_request(f"functionCallingConfig.mode: '{mode[:100]}' is not supported.")
    return ToolChoice(mode="auto"), names


def _get_field(value: Row, name: str) -> Any:
    """Return a field by its name in either spelling, `functionCall` or `function_call`."""
    if name in value:
        return value[name]
    return value.get(_snake_case(name))


@cache
def _snake_case(name: str) -> str:
    """Return the other spelling of a field; there are few, and each is looked for in every part of every request."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
