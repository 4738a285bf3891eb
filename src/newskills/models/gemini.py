# SPDX-License-Identifier: Apache-2.0
"""Google's Gemini API. https://ai.google.dev/api/generate-content (v1beta).

Thinking: without `reasoning_effort` and `thinking_budget` it is switched off where the model allows that (2.5 Flash:
budget 0; 3 Flash: level minimal; Pro models always think); `dynamic` leaves the budget to the model (-1); low, medium,
high and minimal are levels from Gemini 3 on, and token budgets before. A budget of one's own is for Gemini 2.5: later
models have levels, earlier ones do not think.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from newskills.base.callbacks import HearPiece
from newskills.base.errors import ConfigError, ContentFilterError, ServerError, TransportError
from newskills.base.records import Inference, Logprobs, Message, Reply, ReplyPiece, Request, Row, Usage
from newskills.models.config import ServerConfig
from newskills.models.decode import (
    call_arguments,
    decode_body,
    first_count,
    image_url_of,
    member_of,
    text_or_none,
    tool_call,
)
from newskills.models.errors import EndpointIdentity, error_for, refusal_of
from newskills.models.kinds import MODELS
from newskills.models.parameters import refuse_both
from newskills.models.wire import HttpModel, base_url_of, encode_body, require_key, require_model

URL = "https://generativelanguage.googleapis.com/v1beta"
BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
EFFORTS = ("dynamic", *BUDGETS)
LIMITS = {"-pro": (128, 32768), "-lite": (512, 24576), "": (1, 24576)}
"""Parts of the names of models of Gemini 2.5 → least and largest budget.

https://ai.google.dev/gemini-api/docs/thinking
"""
FINISHES = {"STOP": "stop", "MAX_TOKENS": "length"}
FILTERS = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"}
)


class GeminiCandidate(Struct, rename="camel"):
    content: Row | None = None
    finish_reason: str | None = None
    logprobs_result: Any = None


class GeminiResponse(Struct, rename="camel"):
    candidates: list[GeminiCandidate] = []
    prompt_feedback: Any = None
    usage_metadata: Any = None
    model_version: Any = None
    error: Any = None


_answers = msgspec.json.Decoder(GeminiResponse)


class GeminiModel(HttpModel):
    """Chat only. `complete` raises the HttpError family, and ConfigError for what the API has no word for."""

    def __init__(self, endpoint: EndpointIdentity, *, concurrency: int, environ: Mapping[str, str]) -> None:
        headers = (("x-goog-api-key", endpoint.key or ""),)
        super().__init__(endpoint, concurrency=concurrency, environ=environ, headers=headers)
        self.path = f"/models/{quote(endpoint.model.removeprefix('models/'), safe='')}"

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Raise ConfigError for a setting that the API cannot honour."""
        check_inference(self.name, inference)

    async def complete(self, request: Request) -> Reply:
        started = time.time()
        request, hear = self._as_heard(request)
        inference = request.inference
        path, body = self.encoded(request)
        if inference.stream:
            reply = reply_of(await self._stream(body, inference.timeout, hear), self.endpoint)
        else:
            reply = self.decoded(request, await self._post(path, body, inference.timeout))
        reply.started, reply.ended = started, time.time()
        return reply

    def encoded(self, request: Request) -> tuple[str, bytes]:
        """Return the path and the body of `request`. Raises ConfigError."""
        inference = request.inference
        check_inference(self.name, inference)
        body = encode_body({**request_keys(self.name, request), **inference.extra_body, **request.extra_body})
        return f"{self.path}:generateContent", body

    def decoded(self, request: Request, body: bytes) -> Reply:
        """Return the reply to `request` that `body` holds. Raises ModelError."""
        answer = decode_body(body, _answers, GeminiResponse, self.endpoint.address)
        return reply_of(answer, self.endpoint)

    async def _stream(self, body: bytes, timeout: float, hear: HearPiece | None) -> GeminiResponse:
        whole = GeminiResponse()
        async with self._open_stream(f"{self.path}:streamGenerateContent?alt=sse", body, timeout) as response:
            async for data in response.events():
                begun = len(_parts_of(whole))
                _merge_piece(whole, decode_body(data, _answers, GeminiResponse, self.endpoint.address))
                if hear is not None:
                    _report_parts(hear, whole, begun)
        if whole.candidates and whole.candidates[0].finish_reason is None:
            raise TransportError(f"{self.endpoint.address} ended its stream in the middle of the reply.")
        return whole


def make(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> GeminiModel:
    """Return the model for Gemini's API. Raises AuthError without `GEMINI_API_KEY` or `GOOGLE_API_KEY`."""
    key, source = require_key(config, environ, *MODELS.properties(config.server_type).keys)
    url = base_url_of(config, URL, v1=False)
    if "/" not in url.split("://", 1)[1]:
        url += "/v1beta"
    endpoint = EndpointIdentity(url, require_model(config), key, source)
    return GeminiModel(endpoint, concurrency=concurrency, environ=environ)


def check_inference(model: str, inference: Inference) -> None:
    """Raise ConfigError naming the setting that the API cannot honour, and what to set instead."""
    if inference.endpoint_type != "chat":
        raise ConfigError("gemini has only a chat endpoint.", hint="Set ++inference.endpoint_type=chat.")
    neutral = Inference()
    for name in ("min_p", "repetition_penalty"):
        if getattr(inference, name) != getattr(neutral, name):
            raise ConfigError(f"gemini does not accept inference.{name}.", hint=f"Leave out ++inference.{name}.")
    if inference.reasoning_effort is not None and inference.reasoning_effort not in EFFORTS:
        raise ConfigError(
            f"gemini has no reasoning effort '{inference.reasoning_effort}'; choose one of {', '.join(EFFORTS)}."
        )
    if inference.thinking_budget is not None:
        _budget_config(model, inference)


def request_keys(model: str, request: Request) -> Row:
    """Return the whole body. System messages become the system instruction."""
    messages = request.messages or []
    body: Row = {"contents": wire_contents([m for m in messages if m.role not in ("system", "developer")])}
    system = [part for m in messages if m.role in ("system", "developer") for part in _converted_parts(m.content)]
    if system:
        body["systemInstruction"] = {"parts": system}
    if request.tools:
        body["tools"] = [
            {"functionDeclarations": [_tool_declaration(t.get("function", t)) for t in request.tools]}
        ]
    body["generationConfig"] = generation_config(model, request)
    return body


def thinking_keys(server_type: str, model: str, inference: Inference) -> Row:
    """Return the keys of a request body that say how much may be thought, as `parameters.thinking_keys` does. Raises
    ConfigError for what the model does not take."""
    config = _thinking_config(model, inference)
    if config:
        return {"generationConfig": {"thinkingConfig": config}}
    return {}


def tool_choice_keys(mode: str, name: str, parallel: bool | None, responses: bool) -> Row:
    """Return the keys of a request body that say which tools may be called, as `parameters.tool_choice_keys` does."""
    if mode == "auto":
        return {}
    calling: Row = {"mode": mode.upper()}
    if name:
        calling["allowedFunctionNames"] = [name]
    return {"toolConfig": {"functionCallingConfig": calling}}


def generation_config(model: str, request: Request) -> Row:
    """Return the settings for sampling, limits, thinking and output format."""
    inference = request.inference
    config: Row = {"temperature": inference.temperature, "topP": inference.top_p, "seed": inference.random_seed}
    if inference.tokens_to_generate is not None:
        config["maxOutputTokens"] = inference.tokens_to_generate
    if (inference.top_k or 0) > 0:
        config["topK"] = inference.top_k
    if request.stop:
        config["stopSequences"] = request.stop
    if inference.top_logprobs is not None:
        config |= {"responseLogprobs": True, "logprobs": inference.top_logprobs}
    if thinking := _thinking_config(model, inference):
        config["thinkingConfig"] = thinking
    if request.response_format is not None:
        config["responseMimeType"] = "application/json"
        schema = request.response_format.get("json_schema")
        if isinstance(schema, dict):
            config["responseJsonSchema"] = schema.get("schema")
    return {name: value for name, value in config.items() if value is not None}


def wire_contents(messages: list[Message]) -> list[Row]:
    """Return the turns of user and model; results of tools are a user's turn, and neighbours of one role are joined."""
    joined: list[Row] = []
    names: dict[str, str] = {}
    for message in messages:
        role = "model" if message.role == "assistant" else "user"
        if message.role == "tool":
            name = message.name or names.get(message.tool_call_id or "", "")
            parts = [{"functionResponse": {"name": name, "response": {"result": message.content}}}]
        else:
            parts = _converted_parts(message.content)
        called = any("functionCall" in part for part in parts)
        for call in message.tool_calls or ():
            function = call.get("function", {})
            names[str(call.get("id"))] = str(function.get("name"))
            if not called:
                arguments = call_arguments(function.get("arguments") or "")
                parts.append({"functionCall": {"name": function.get("name"), "args": arguments}})
        if joined and joined[-1]["role"] == role:
            joined[-1]["parts"] += parts
        else:
            joined.append({"role": role, "parts": parts})
    return joined


def reply_of(answer: GeminiResponse, endpoint: EndpointIdentity) -> Reply:
    """Convert the answer to a reply; `raw_message` keeps the parts, since their signatures must be sent back
    beside tool results.

    Raises ServerError for an answer without candidates or parts, ContentFilterError for a blocked prompt.
    """
    if answer.error:
        refusal = refusal_of({"error": answer.error})
        code = member_of(answer.error, "code")
        if not isinstance(code, int):
            code = 500
        raise error_for(code, refusal, endpoint)
    if not answer.candidates:
        feedback = answer.prompt_feedback
        if isinstance(feedback, dict) and (reason := feedback.get("blockReason")):
            raise ContentFilterError(f"{endpoint.address} blocks the prompt ({reason}).", status=200)
        raise ServerError(f"{endpoint.address} answered without any candidate.", status=200)
    candidate = answer.candidates[0]
    parts = (candidate.content or {}).get("parts") or []
    reason = candidate.finish_reason or ""
    if not parts and reason in ("", "STOP", "OTHER", "FINISH_REASON_UNSPECIFIED"):
        raise ServerError(
            f"{endpoint.address} answered with a candidate that has no parts ({reason}).", status=200
        )
    calls = [_read_call(part["functionCall"], index) for index, part in enumerate(parts) if "functionCall" in part]
    finish = FINISHES.get(reason, reason.lower() or None)
    if reason in FILTERS:
        finish = "content_filter"
    elif calls and finish == "stop":
        finish = "tool_calls"
    return Reply(
        text="".join(part.get("text") or "" for part in parts if not part.get("thought")),
        reasoning="".join(part.get("text") or "" for part in parts if part.get("thought")) or None,
        finish_reason=finish,
        usage=_read_usage(answer.usage_metadata),
        tool_calls=calls or None,
        logprobs=_read_logprobs(candidate.logprobs_result),
        model=text_or_none(answer.model_version),
        raw_message={"role": "assistant", "content": parts},
    )


def _thinking_config(model: str, inference: Inference) -> Row | None:
    if inference.thinking_budget is not None:
        return _budget_config(model, inference)
    effort = inference.reasoning_effort
    version = _version_of(model)
    if effort == "dynamic":
        return {"thinkingBudget": -1, "includeThoughts": True}
    if effort is not None and version >= (3, 0):
        return {"thinkingLevel": effort, "includeThoughts": True}
    if effort is not None:
        return {"thinkingBudget": BUDGETS[effort], "includeThoughts": True}
    if version < (2, 5) or "-pro" in model:
        return None
    if version >= (3, 0):
        return {"thinkingLevel": "minimal"}
    return {"thinkingBudget": 0}


def _budget_config(model: str, inference: Inference) -> Row:
    refuse_both(inference)
    budget = inference.thinking_budget
    if _version_of(model) != (2, 5):
        hint = "Leave out ++inference.thinking_budget."
        if _version_of(model) > (2, 5):
            hint = "Set ++inference.reasoning_effort=LEVEL instead."
        raise ConfigError(f"{model} takes no inference.thinking_budget: only Gemini 2.5 has one.", hint=hint)
    low, high = next(limits for name, limits in LIMITS.items() if name in model)
    if budget == "none" and "-pro" in model:
        raise ConfigError(f"{model} cannot be kept from thinking.", hint=f"Set ++inference.thinking_budget={low}.")
    if budget != "none" and not low <= (budget or 0) <= high:
        raise ConfigError(f"{model} takes an inference.thinking_budget from {low:,} to {high:,}, not {budget:,}.")
    if budget == "none":
        return {"thinkingBudget": 0}
    return {"thinkingBudget": budget, "includeThoughts": True}


def _version_of(model: str) -> tuple[int, int]:
    match = re.search(r"gemini-(\d+)(?:\.(\d+))?", model)
    if match is None:
        return 0, 0
    return int(match[1]), int(match[2] or 0)


def _converted_parts(content: str | list[Row] | None) -> list[Row]:
    if not content:
        return []
    if isinstance(content, str):
        return [{"text": content}]
    return [_converted_part(part) for part in content]


def _converted_part(part: Row) -> Row:
    if part.get("type") == "text":
        return {"text": part.get("text", "")}
    if part.get("type") != "image_url":
        return part
    url = str(image_url_of(part))
    head, _, data = url.partition(";base64,")
    if head.startswith("data:") and data:
        return {"inlineData": {"mimeType": head[5:], "data": data}}
    return {"fileData": {"fileUri": url}}


def _tool_declaration(function: Row) -> Row:
    declaration: Row = {"name": function.get("name")}
    if function.get("description"):
        declaration["description"] = function["description"]
    if schema := function.get("parameters") or function.get("input_schema"):
        declaration["parametersJsonSchema"] = schema
    return declaration


def _read_call(call: Row, index: int) -> Row:
    arguments = msgspec.json.encode(call.get("args") or {}).decode()
    return tool_call(call.get("id") or f"call_{index}", call.get("name") or "", arguments)


def _read_usage(value: Any) -> Usage:
    answer_tokens, thought = first_count(value, "candidatesTokenCount"), first_count(value, "thoughtsTokenCount")
    output_tokens = None
    if answer_tokens is not None or thought is not None:
        output_tokens = (answer_tokens or 0) + (thought or 0)
    return Usage(
        input_tokens=first_count(value, "promptTokenCount"),
        output_tokens=output_tokens,
        reasoning_tokens=thought,
        cached_tokens=first_count(value, "cachedContentTokenCount"),
    )


def _read_logprobs(value: Any) -> Logprobs | None:
    if not isinstance(value, dict) or not value.get("chosenCandidates"):
        return None
    chosen = value["chosenCandidates"]
    tops = [
        {other.get("token", ""): float(other["logProbability"]) for other in top.get("candidates") or ()}
        for top in value.get("topCandidates") or ()
    ]
    return Logprobs(
        tokens=[entry.get("token", "") for entry in chosen],
        logprobs=[float(entry["logProbability"]) for entry in chosen],
        top_logprobs=tops if len(tops) == len(chosen) else None,
    )


def _merge_piece(whole: GeminiResponse, piece: GeminiResponse) -> None:
    whole.usage_metadata = piece.usage_metadata or whole.usage_metadata
    whole.model_version = piece.model_version or whole.model_version
    whole.prompt_feedback = piece.prompt_feedback or whole.prompt_feedback
    whole.error = piece.error or whole.error
    for candidate in piece.candidates[:1]:
        if not whole.candidates:
            whole.candidates.append(GeminiCandidate(content={"role": "model", "parts": []}))
        first_candidate = whole.candidates[0]
        first_candidate.finish_reason = candidate.finish_reason or first_candidate.finish_reason
        assert first_candidate.content is not None
        first_candidate.content["parts"] += (candidate.content or {}).get("parts") or []
        first_candidate.logprobs_result = _joined_values(
            first_candidate.logprobs_result, candidate.logprobs_result
        )


def _parts_of(answer: GeminiResponse) -> list[Row]:
    """Return the parts of the first candidate."""
    if not answer.candidates:
        return []
    return (answer.candidates[0].content or {}).get("parts") or []


def _report_parts(hear: HearPiece, whole: GeminiResponse, begun: int) -> None:
    """Tell a listener of the parts from number `begun` on."""
    parts = _parts_of(whole)
    for index, part in enumerate(parts[begun:], begun):
        fields: Row = {"reasoning" if part.get("thought") else "text": part.get("text") or ""}
        if "functionCall" in part:
            call = _read_call(part["functionCall"], index)
            number = sum("functionCall" in other for other in parts[:index])
            fields |= {"call": number, "call_id": call["id"], **call["function"]}
        native = {key: value for key, value in part.items() if key != "text"}
        if fields.get("call") is not None or native.keys() - {"thought"} or any(fields.values()):
            hear(ReplyPiece(native=part, **fields))


def _joined_values(joined: Any, new: Any) -> Any:
    if not isinstance(joined, dict) or not isinstance(new, dict):
        return new or joined
    names = ("chosenCandidates", "topCandidates")
    return {name: [*(joined.get(name) or ()), *(new.get(name) or ())] for name in names}
