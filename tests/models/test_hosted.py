# SPDX-License-Identifier: Apache-2.0
"""Wires of their own: Azure, Anthropic, Gemini, and LiteLLM for the rest. Each server checks what it receives."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from tests.base.http._loopback import Heard, Play, always, events, loopback, replies, response, run

from newskills.base.errors import (
    AuthError,
    BadRequestError,
    ConfigError,
    HttpError,
    RateLimitError,
    ServerError,
    TransportError,
)
from newskills.base.records import Inference, Message, Reply, Request, Row, Usage
from newskills.models import anthropic, gemini, make_model
from newskills.models.config import ServerConfig
from newskills.models.errors import ModelNotFoundError

KEYS = {"AZURE_OPENAI_API_KEY": "az", "ANTHROPIC_API_KEY": "an", "GEMINI_API_KEY": "ge"}
TOOL = {"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object"}}}
CALL = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CONVERSATION = [
    Message(role="system", content="be brief"),
    Message(role="user", content=[{"type": "text", "text": "look"}, IMAGE]),
    Message(role="assistant", content="let me", tool_calls=[CALL]),
    Message(role="tool", content="42", tool_call_id="c0"),
    Message(role="user", content="and now?"),
]


async def ask(server_type: str, play: Play, request: Request, model: str) -> tuple[Reply, Heard]:
    async with loopback(play) as place:
        config = ServerConfig(server_type=server_type, model=model, base_url=place.url)
        made = make_model(config, concurrency=2, environ=KEYS)
        try:
            return await made.complete(request), place.heard[-1]
        finally:
            await made.close()


def user(**fields: Any) -> Request:
    return Request(messages=[Message(role="user", content="hi")], inference=Inference(**fields))


def test_azure_asks_the_deployment() -> None:
    answer = {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}
    reply, heard = run(ask("azureopenai", replies(answer), user(tokens_to_generate=4), "my dep"))
    assert heard.path == "/openai/deployments/my%20dep/chat/completions?api-version=2024-12-01-preview"
    assert heard.headers["api-key"] == "az"
    assert "authorization" not in heard.headers
    assert heard.json["max_tokens"] == 4
    assert reply.text == "hello"


def test_azure_without_versions() -> None:
    config = ServerConfig(server_type="azureopenai", model="m", base_url="https://r.openai.azure.com/openai/v1/")
    assert make_model(config, concurrency=1, environ=KEYS).endpoint.address.endswith("/openai/v1")  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        make_model(ServerConfig(server_type="azureopenai", model="m"), concurrency=1, environ=KEYS)


CLAUDE = {
    "model": "claude-x",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "hello"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 3,
        "cache_read_input_tokens": 10,
        "cache_creation_input_tokens": 1,
        "output_tokens": 7,
    },
}


def test_anthropic_request_and_reply() -> None:
    request = Request(
        messages=CONVERSATION,
        inference=Inference(tokens_to_generate=100, temperature=0.5, top_k=7),
        stop=["END"],
        tools=[TOOL],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    )
    reply, heard = run(ask("anthropic", replies(CLAUDE), request, "claude-haiku-4-5-20251001"))
    assert heard.path == "/v1/messages"
    assert (heard.headers["x-api-key"], heard.headers["anthropic-version"]) == ("an", "2023-06-01")
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert heard.json == {
        "model": "claude-haiku-4-5-20251001",
        "max_tokens": 100,
        "temperature": 0.5,
        "top_k": 7,
        "system": [{"type": "text", "text": "be brief"}],
        "stop_sequences": ["END"],
        "tools": [{"name": "f", "description": "does f", "input_schema": {"type": "object"}}],
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "source": source}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "let me"},
                    {"type": "tool_use", "id": "c0", "name": "f", "input": {"x": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c0", "content": [{"type": "text", "text": "42"}]},
                    {"type": "text", "text": "and now?"},
                ],
            },
        ],
    }
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("hello", "hm", "tool_calls")
    assert reply.tool_calls == [
        {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    ]
    assert reply.usage == Usage(input_tokens=14, output_tokens=7, cached_tokens=10, cache_written_tokens=1)
    assert reply.raw_message == {"role": "assistant", "content": CLAUDE["content"]}


def test_anthropic_takes_its_own_blocks_back_once() -> None:
    again = Message(role="assistant", content=CLAUDE["content"], tool_calls=[CALL])
    assert anthropic.wire_turns([again]) == [{"role": "assistant", "content": CLAUDE["content"]}]


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-3-5-sonnet-20241022", (0, 0)),
        ("claude-sonnet-4-20250514", (4, 0)),
        ("claude-haiku-4-5-20251001", (4, 5)),
        ("claude-opus-4-7", (4, 7)),
        ("anthropic/claude-sonnet-5", (5, 0)),
        ("claude-opus-5-5", (5, 5)),
    ],
)
def test_anthropic_versions(model: str, version: tuple[int, int]) -> None:
    assert anthropic.claude_version(model) == version


def test_anthropic_thinking_by_generation() -> None:
    inference = Inference(tokens_to_generate=4000, reasoning_effort="high")
    old = anthropic.constant_keys("claude-sonnet-4-5", inference)
    assert old["thinking"] == {"type": "enabled", "budget_tokens": 3999}
    assert "temperature" not in old
    assert anthropic.constant_keys("claude-opus-4-6", inference)["thinking"] == {"type": "adaptive"}
    assert anthropic.request_keys("claude-opus-4-6", user(reasoning_effort="high"))["output_config"] == {
        "effort": "high"
    }
    plain = Inference(tokens_to_generate=9)
    assert anthropic.constant_keys("claude-opus-4-6", plain)["temperature"] == 0.0
    assert anthropic.constant_keys("claude-opus-4-7", plain) == {"model": "claude-opus-4-7", "max_tokens": 9}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tokens_to_generate": None}, "tokens_to_generate"),
        ({"min_p": 0.1}, "min_p"),
        ({"repetition_penalty": 1.1}, "repetition_penalty"),
        ({"top_logprobs": 1}, "top_logprobs"),
        ({"endpoint_type": "text"}, "chat"),
        ({"reasoning_effort": "low", "temperature": 0.5}, "temperature"),
        ({"reasoning_effort": "enormous"}, "reasoning effort"),
    ],
)
def test_anthropic_refuses_what_it_cannot_honour(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        anthropic.check_inference("claude-sonnet-4-5", Inference(**{"tokens_to_generate": 9, **fields}))


def test_newer_claudes_take_no_sampling_settings() -> None:
    with pytest.raises(ConfigError, match="temperature"):
        anthropic.check_inference("claude-opus-4-7", Inference(tokens_to_generate=9, temperature=0.5))
    anthropic.check_inference("claude-opus-4-7", Inference(tokens_to_generate=9))


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("stop_sequence", "stop"),
        ("new_one", "new_one"),
    ],
)
def test_anthropic_finish_reasons(stop: str, finish: str) -> None:
    answer = {"content": [], "stop_reason": stop, "usage": {}}
    reply, _ = run(ask("anthropic", replies(answer), user(tokens_to_generate=9), "claude-opus-4-6"))
    assert (reply.text, reply.finish_reason, reply.usage) == ("", finish, Usage())


STREAM: list[Row] = [
    {"type": "message_start", "message": {"model": "claude-x", "usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "hel"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "lo"}},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"x":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 8}},
    {"type": "message_stop"},
]


def test_anthropic_stream() -> None:
    request = user(tokens_to_generate=9, stream=True)
    reply, heard = run(ask("anthropic", always(events(*STREAM, done=False)), request, "claude-opus-4-6"))
    assert heard.json["stream"] is True
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("hello", "hm", "stop")
    assert reply.usage == Usage(input_tokens=3, output_tokens=8)
    assert reply.tool_calls is not None
    assert reply.tool_calls[0]["function"] == {"name": "f", "arguments": '{"x":1}'}
    for stream, kind in (
        (STREAM[:6], TransportError),
        ([*STREAM[:6], {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}], ServerError),
        ([{"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}], RateLimitError),
    ):
        with pytest.raises(kind):
            run(ask("anthropic", always(events(*stream, done=False)), request, "claude-opus-4-6"))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("401 X", AuthError),
        ("404 X", ModelNotFoundError),
        ("429 X", RateLimitError),
        ("529 X", ServerError),
        ("400 X", BadRequestError),
    ],
)
@pytest.mark.parametrize(
    ("server_type", "model"), [("anthropic", "claude-opus-4-6"), ("gemini", "gemini-2.5-flash")]
)
def test_refusals(server_type: str, model: str, status: str, kind: type[HttpError]) -> None:
    body = b'{"type":"error","error":{"type":"x","message":"no"}}'
    for stream in (False, True):
        with pytest.raises(kind):
            run(ask(server_type, always(response(body, status)), user(tokens_to_generate=9, stream=stream), model))


GEMINI: Row = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "hello", "thoughtSignature": "s"},
                    {"functionCall": {"name": "f", "args": {"x": 1}}},
                ],
            },
            "finishReason": "STOP",
            "logprobsResult": {
                "chosenCandidates": [{"token": "hello", "logProbability": -0.5}],
                "topCandidates": [{"candidates": [{"token": "hello", "logProbability": -0.5}]}],
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 2},
    "modelVersion": "gemini-x",
}


def test_gemini_request_and_reply() -> None:
    request = Request(
        messages=CONVERSATION,
        inference=Inference(tokens_to_generate=100, temperature=0.5, top_k=7, random_seed=2, top_logprobs=1),
        stop=["END"],
        tools=[TOOL],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    )
    reply, heard = run(ask("gemini", replies(GEMINI), request, "gemini-2.5-flash"))
    assert heard.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert heard.headers["x-goog-api-key"] == "ge"
    assert heard.json == {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
            },
            {"role": "model", "parts": [{"text": "let me"}, {"functionCall": {"name": "f", "args": {"x": 1}}}]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"result": "42"}}},
                    {"text": "and now?"},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "f", "description": "does f", "parametersJsonSchema": {"type": "object"}}
                ]
            }
        ],
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.95,
            "topK": 7,
            "seed": 2,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "responseLogprobs": True,
            "logprobs": 1,
            "thinkingConfig": {"thinkingBudget": 0},
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        },
    }
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("hello", "hm", "tool_calls")
    assert reply.usage == Usage(input_tokens=3, output_tokens=7, reasoning_tokens=2)
    assert reply.logprobs is not None
    assert reply.logprobs.top_logprobs == [{"hello": -0.5}]
    assert reply.raw_message is not None
    parts = reply.raw_message["content"]
    again = gemini.wire_contents([Message(role="assistant", content=parts, tool_calls=reply.tool_calls)])
    assert again == [{"role": "model", "parts": parts}]


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("gemini-2.5-flash", None, {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "dynamic", {"thinkingBudget": -1, "includeThoughts": True}),
        ("gemini-2.5-pro", "low", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("gemini-2.5-pro", None, None),
        ("gemini-2.0-flash", None, None),
        ("gemini-3-flash-preview", None, {"thinkingLevel": "minimal"}),
        ("gemini-3.1-pro", "high", {"thinkingLevel": "high", "includeThoughts": True}),
    ],
)
def test_gemini_thinking(model: str, effort: str | None, thinking: Row | None) -> None:
    sent = gemini.generation_config(model, user(reasoning_effort=effort))
    assert sent.get("thinkingConfig") == thinking


@pytest.mark.parametrize(
    "fields",
    [{"min_p": 0.1}, {"repetition_penalty": 2.0}, {"endpoint_type": "responses"}, {"reasoning_effort": "huge"}],
)
def test_gemini_refuses_what_it_cannot_honour(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        gemini.check_inference("gemini-2.5-flash", Inference(**fields))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({}, ServerError),
        ({"candidates": []}, ServerError),
        ({"candidates": [{"finishReason": "STOP"}]}, ServerError),
        ({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}, ServerError),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, BadRequestError),
        ({"error": {"code": 429, "message": "slow"}}, RateLimitError),
    ],
)
def test_gemini_answers_that_are_none(answer: Row, kind: type[HttpError]) -> None:
    with pytest.raises(kind):
        run(ask("gemini", replies(answer), user(), "gemini-2.5-flash"))


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "malformed_function_call"),
    ],
)
def test_gemini_finish_reasons(reason: str, finish: str) -> None:
    answer = {"candidates": [{"content": {}, "finishReason": reason}]}
    reply, _ = run(ask("gemini", replies(answer), user(), "gemini-2.5-flash"))
    assert (reply.text, reply.finish_reason) == ("", finish)


def test_gemini_stream() -> None:
    def piece(text: str, **fields: Any) -> Row:
        return {"candidates": [{"content": {"parts": [{"text": text}]}, **fields}]}

    last = {
        **piece("lo", finishReason="STOP"),
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
    }
    reply, heard = run(
        ask("gemini", always(events(piece("hel"), last, done=False)), user(stream=True), "models/gemini-2.5-flash")
    )
    assert heard.path == "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert (reply.text, reply.finish_reason, reply.usage.output_tokens) == ("hello", "stop", 2)
    with pytest.raises(TransportError):
        run(ask("gemini", always(events(piece("hel"), done=False)), user(stream=True), "gemini-2.5-flash"))


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_litellm_for_the_rest() -> None:
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed: newskills[litellm]")
    answer = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "hello END"}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }
    busy = response(b'{"error":{"message":"slow down"}}', "429 X")

    async def work() -> None:
        async with loopback(replies(answer)) as place, loopback(always(busy)) as full:
            request = Request(messages=[Message(role="user", content="hi")], stop=["END"])
            config = ServerConfig(server_type="litellm", model="openai/m", base_url=place.url, api_key="k")
            model = make_model(config, concurrency=2, environ={})
            reply = await model.complete(request)
            assert (reply.text, reply.finish_reason) == ("hello ", "stop")
            assert reply.usage == Usage(input_tokens=3, output_tokens=2)
            assert place.heard[0].json["messages"] == [{"role": "user", "content": "hi"}]
            await model.close()
            config = ServerConfig(server_type="litellm", model="openai/m", base_url=full.url, api_key="k")
            with pytest.raises(RateLimitError):
                await make_model(config, concurrency=2, environ={}).complete(request)
            assert len(full.heard) == 1

    run(work())
