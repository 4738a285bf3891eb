# SPDX-License-Identifier: Apache-2.0
"""The official `openai` client against the gateway: Chat Completions and Responses, streamed and not."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from tests.gateway.scripted import RunningGateway, ScriptedModel, call, running

from newskills.base.errors import ContextLimitError, RateLimitError, ServerError
from newskills.base.records import Logprobs, Reply, Usage

TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": "x", "parameters": {"type": "object", "properties": {}}},
    }
    for name in ("read", "write")
]
FLAT = [{**tool["function"], "type": "function"} for tool in TOOLS]
USED = Usage(input_tokens=11, output_tokens=7, cached_tokens=3, reasoning_tokens=2)
CALLS = [call("c1", "read", '{"path": "a b"}'), call("c2", "write", '{"path":"é","text":"\\n"}')]
WORK = Reply(text="Let me look.", reasoning="Two files.", finish_reason="tool_calls", usage=USED, tool_calls=CALLS)
DONE = Reply(text="Done: ünï 🙂\n" * 400, finish_reason="stop", usage=USED)
PIXEL = base64.b64encode(b"\x89PNG").decode()
Client = Any


@contextmanager
def client(served: RunningGateway, key: str = "x", retries: int = 0) -> Iterator[Client]:
    with openai.OpenAI(base_url=f"{served.url}/t1/v1", api_key=key, max_retries=retries, timeout=60) as made:
        yield made


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_with_parallel_calls_and_their_results(streamed: bool) -> None:
    model = ScriptedModel(WORK, DONE)
    with running(model) as served, client(served) as made:

        def ask(messages: list[Any]) -> Any:
            if not streamed:
                return made.chat.completions.create(model="m", messages=messages, tools=TOOLS)
            with made.chat.completions.stream(
                model="m", messages=messages, tools=TOOLS, stream_options={"include_usage": True}
            ) as stream:
                return stream.get_final_completion()

        messages: list[Any] = [{"role": "user", "content": "do it"}]
        first = ask(messages)
        message = first.choices[0].message
        assert (message.content, message.reasoning_content) == ("Let me look.", "Two files.")
        assert [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls] == [
            (c["id"], c["function"]["name"], c["function"]["arguments"]) for c in CALLS
        ]
        assert first.choices[0].finish_reason == "tool_calls"
        assert (first.usage.prompt_tokens, first.usage.completion_tokens) == (11, 7)
        assert first.usage.prompt_tokens_details.cached_tokens == 3
        messages += [message.model_dump(exclude_none=True, exclude={"parsed"})]
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": c["id"]} for c in CALLS]
        second = ask(messages)
    assert second.choices[0].message.content == DONE.text
    assert second.choices[0].finish_reason == "stop"
    asked = model.requests[1].messages or []
    assert [m.role for m in asked] == ["user", "assistant", "tool", "tool"]
    assert [c["function"] for c in asked[1].tool_calls or ()] == [c["function"] for c in CALLS]
    assert asked[1].reasoning_content == "Two files."
    assert [t["function"]["name"] for t in model.requests[1].tools or ()] == ["read", "write"]


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_with_reasoning_calls_and_their_results(streamed: bool) -> None:
    model = ScriptedModel(WORK, DONE)
    with running(model) as served, client(served) as made:

        def ask(items: list[Any]) -> Any:
            options: Any = {
                "model": "m",
                "input": items,
                "instructions": "Be good.",
                "tools": [*FLAT, {"type": "web_search"}],
                "include": ["reasoning.encrypted_content"],
                "store": False,
            }
            if not streamed:
                return made.responses.create(**options)
            with made.responses.stream(**options) as stream:
                return stream.get_final_response()

        items: list[Any] = [
            {"role": "developer", "content": "Also."},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                ],
            },
        ]
        first = ask(items)
        assert [item.type for item in first.output] == ["reasoning", "message", "function_call", "function_call"]
        assert first.output_text == "Let me look."
        assert first.output[0].content[0].text == "Two files."
        assert [(c.call_id, c.name, c.arguments) for c in first.output[2:]] == [
            (c["id"], c["function"]["name"], c["function"]["arguments"]) for c in CALLS
        ]
        assert first.status == "completed"
        assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.total_tokens) == (11, 7, 18)
        items += [item.model_dump(exclude_none=True) for item in first.output]
        items += [{"type": "function_call_output", "call_id": c["id"], "output": c["id"]} for c in CALLS]
        assert ask(items).output_text == DONE.text
    asked = model.requests[1].messages or []
    assert [m.role for m in asked] == ["system", "user", "assistant", "tool", "tool"]
    assert asked[0].content == "Be good.\n\nAlso."
    assert asked[1].content[1] == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert (asked[2].content, asked[2].reasoning_content) == ("Let me look.", "Two files.")
    assert asked[2].tool_calls == CALLS
    assert [t["function"]["name"] for t in model.requests[0].tools or ()] == ["read", "write"]


@pytest.mark.parametrize("streamed", [False, True])
def test_free_text_tools_and_namespaces_of_responses(streamed: bool) -> None:
    patch = "*** Begin Patch\n*** End Patch"
    calls = [
        call("c1", "apply_patch", '{"input": "*** Begin Patch\\n*** End Patch"}'),
        call("c2", "mcp__look", "{}"),
    ]
    model = ScriptedModel(Reply(text="", tool_calls=calls, finish_reason="tool_calls"), DONE)
    tools: list[Any] = [
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "p",
            "format": {"type": "grammar", "definition": "g"},
        },
        {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "look", "parameters": {}}]},
    ]
    with running(model) as served, client(served) as made:

        def ask(items: list[Any]) -> Any:
            stream = made.responses.create(model="m", input=items, tools=tools, stream=streamed)
            return list(stream)[-1].response if streamed else stream

        output = ask([{"role": "user", "content": "go"}]).output
        assert (output[0].type, output[0].name, output[0].input) == ("custom_tool_call", "apply_patch", patch)
        assert (output[1].type, output[1].name, output[1].namespace) == ("function_call", "look", "mcp")
        items = [item.model_dump(exclude_none=True) for item in output]
        results = [
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "seen"}]},
        ]
        ask([{"role": "user", "content": "go"}, *items, *results])
    asked = model.requests[1].messages or []
    assert asked[1].tool_calls == calls
    assert [m.content for m in asked[2:]] == ["ok", "seen"]


ERRORS = [
    (ContextLimitError("too long: 9 > 8", status=400), openai.BadRequestError, 400),
    (RateLimitError("slow down", retry_after=3.0), openai.RateLimitError, 429),
    (ServerError("broken", status=500), openai.InternalServerError, 500),
]


@pytest.mark.parametrize(("raised", "kind", "status"), ERRORS)
@pytest.mark.parametrize("streamed", [False, True])
def test_errors_keep_their_kind(
    raised: Any, kind: type[openai.APIStatusError], status: int, streamed: bool
) -> None:
    model = ScriptedModel(raised)
    with running(model) as served, client(served) as made:
        with pytest.raises(kind) as caught:
            made.chat.completions.create(model="m", messages=[{"role": "user", "content": "a"}], stream=streamed)
        assert caught.value.status_code == status
        if status == 400:
            assert caught.value.code == "context_length_exceeded"
        if status == 429:
            assert caught.value.response.headers["retry-after"] == "3"
        with pytest.raises(kind):
            made.responses.create(model="m", input="a", stream=streamed)


def test_a_request_that_cannot_be_served_is_refused_once() -> None:
    model = ScriptedModel(DONE)
    user: list[Any] = [{"role": "user", "content": "a"}]
    with running(model) as served, client(served, retries=3) as made:
        with pytest.raises(openai.BadRequestError, match="web_search"):
            made.responses.create(
                model="m", input="a", tools=[{"type": "web_search"}], tool_choice={"type": "web_search"}
            )
        with pytest.raises(openai.BadRequestError, match="none of its tools"):
            made.responses.create(model="m", input="a", tools=[{"type": "web_search"}], tool_choice="required")
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            made.responses.create(model="m", input="a", previous_response_id="resp_1")
        with pytest.raises(openai.BadRequestError, match="one reply"):
            made.chat.completions.create(model="m", messages=user, n=2)
        with pytest.raises(openai.BadRequestError, match="temperature"):
            made.chat.completions.create(model="m", messages=user, temperature=7)
    assert model.requests == []


def test_sampling_choice_and_logprobs() -> None:
    told = Logprobs(tokens=["a", "é"], logprobs=[-0.5, -0.25], top_logprobs=[{"a": -0.5, "b": -1.0}, {"é": -0.25}])
    model = ScriptedModel(Reply(text="aé", finish_reason="length", logprobs=told, usage=USED))
    with running(model) as served, client(served) as made:
        done = made.chat.completions.create(
            model="m",
            messages=[{"role": "developer", "content": "s"}, {"role": "user", "content": "a"}],
            temperature=0.25,
            top_p=0.5,
            seed=7,
            max_completion_tokens=99,
            stop=["X"],
            tools=TOOLS,
            tool_choice={"type": "function", "function": {"name": "write"}},
            parallel_tool_calls=False,
            logprobs=True,
            response_format={"type": "json_object"},
        )
        assert made.models.list().data[0].id == "scripted"
    assert done.choices[0].finish_reason == "length"
    assert [(t.token, t.logprob, len(t.top_logprobs)) for t in done.choices[0].logprobs.content] == [
        ("a", -0.5, 2),
        ("é", -0.25, 1),
    ]
    asked = model.requests[0]
    inference = asked.inference
    assert (inference.temperature, inference.top_p, inference.random_seed) == (0.25, 0.5, 7)
    assert inference.tokens_to_generate == 99
    assert asked.stop == ["X"]
    assert asked.response_format == {"type": "json_object"}
    assert asked.messages[0].role == "system"
    assert asked.extra_body == {
        "tool_choice": {"type": "function", "function": {"name": "write"}},
        "parallel_tool_calls": False,
    }


def test_a_slow_reply_is_streamed_after_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newskills.gateway.server.SILENCE", 0.05)
    for raised, seen in ((DONE, DONE.text), (ServerError("broken", status=500), None)):
        with running(ScriptedModel(raised, delay=0.5)) as served, client(served) as made:
            with made.chat.completions.with_streaming_response.create(
                model="m", messages=[{"role": "user", "content": "a"}], stream=True
            ) as raw:
                assert raw.headers["transfer-encoding"] == "chunked"
                assert raw.read().startswith(b": wait\n\n: wait\n\n")
            with made.responses.stream(model="m", input="a") as stream:
                if seen is None:
                    events = [event.type for event in stream]
                    assert events == ["response.created", "response.in_progress", "response.failed"]
                else:
                    assert stream.get_final_response().output_text == seen
