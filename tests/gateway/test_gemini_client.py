# SPDX-License-Identifier: Apache-2.0
"""The official `google-genai` client against the gateway, streamed and not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from google.genai import Client, errors, types
from tests.gateway.scripted import RunningGateway, ScriptedModel, call, running

from newskills.base.errors import ContextLimitError, RateLimitError, ServerError
from newskills.base.records import Reply, Usage
from newskills.gateway.tasks import Backend

USED = Usage(input_tokens=11, output_tokens=7, cached_tokens=3, reasoning_tokens=2)
CALLS = [call("c1", "look", '{"path":  "a"}'), call("c2", "look", '{"path":"é","n":[1,2]}')]
WORK = Reply(text="Let me look.", reasoning="Two files.", finish_reason="tool_calls", usage=USED, tool_calls=CALLS)
DONE = Reply(text="Done: ünï 🙂\n" * 400, finish_reason="stop", usage=USED)
LOOK = types.FunctionDeclaration(
    name="look",
    description="x",
    parameters=types.Schema(type="OBJECT", properties={"path": types.Schema(type="STRING", nullable=True)}),
)


@contextmanager
def client(served: RunningGateway, prefix: str = "/t1") -> Iterator[Any]:
    options = types.HttpOptions(base_url=f"{served.url}{prefix}", timeout=60_000)
    with Client(api_key="x", http_options=options) as made:
        yield made


class Whole:
    """What a program has of a reply: all parts in their order, and the last chunk."""

    def __init__(self, chunks: list[Any]) -> None:
        self.last = chunks[-1]
        self.parts: list[Any] = []
        for part in [part for chunk in chunks for part in chunk.candidates[0].content.parts]:
            joins = part.text is not None and self.parts and self.parts[-1].text is not None
            if joins and bool(part.thought) == bool(self.parts[-1].thought):
                self.parts[-1].text += part.text
            elif part.text != "":
                self.parts.append(part)


def ask(made: Any, streamed: bool, contents: Any, **config: Any) -> Whole:
    options = {"model": "gemini-x", "contents": contents, "config": types.GenerateContentConfig(**config)}
    if streamed:
        return Whole(list(made.models.generate_content_stream(**options)))
    return Whole([made.models.generate_content(**options)])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("with_ids", [False, True])
def test_thoughts_parallel_calls_and_their_results(streamed: bool, with_ids: bool) -> None:
    model = ScriptedModel(WORK, DONE)
    picture = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")
    config: dict[str, Any] = {
        "system_instruction": "Be good.",
        "tools": [types.Tool(function_declarations=[LOOK]), types.Tool(google_search=types.GoogleSearch())],
        "automatic_function_calling": {"disable": True},
    }
    with running(model) as served, client(served) as made:
        user = types.Content(role="user", parts=[types.Part(text="see"), picture])
        first = ask(made, streamed, [user], **config)
        thought, text, *called = first.parts
        assert (thought.text, thought.thought, text.text) == ("Two files.", True, "Let me look.")
        assert [(p.function_call.id, p.function_call.name, p.function_call.args) for p in called] == [
            ("c1", "look", {"path": "a"}),
            ("c2", "look", {"path": "é", "n": [1, 2]}),
        ]
        used = first.last.usage_metadata
        assert (used.prompt_token_count, used.candidates_token_count, used.thoughts_token_count) == (11, 5, 2)
        assert first.last.candidates[0].finish_reason == "STOP"
        for part in called if not with_ids else ():
            part.function_call.id = None
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=f"c{number}" if with_ids else None, name="look", response={"output": f"seen {number}"}
                )
            )
            for number in (1, 2)
        ]
        history = [user, types.Content(role="model", parts=first.parts), types.Content(role="user", parts=results)]
        last = ask(made, streamed, history, **config)
    assert [part.text for part in last.parts] == [DONE.text]
    asked = model.requests[1].messages or []
    assert [m.role for m in asked] == ["system", "user", "assistant", "tool", "tool"]
    assert asked[1].content == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
    ]
    assert (asked[2].content, asked[2].reasoning_content) == ("Let me look.", "Two files.")
    assert [m.tool_call_id for m in asked[3:]] == [c["id"] for c in asked[2].tool_calls or ()]
    assert [m.content for m in asked[3:]] == ["seen 1", "seen 2"]
    if with_ids:
        assert asked[2].tool_calls == CALLS
    schema = (model.requests[0].tools or [])[0]["function"]["parameters"]
    assert schema == {"type": "object", "properties": {"path": {"type": ["string", "null"]}}}


@pytest.mark.parametrize("streamed", [False, True])
def test_signatures_of_a_backend_come_back_to_it(streamed: bool) -> None:
    parts = [{"functionCall": {"name": "look", "args": {"path": "a"}}, "thoughtSignature": "c2ln"}]
    reply = Reply(
        text="",
        finish_reason="tool_calls",
        tool_calls=[call("call_0", "look", '{"path":"a"}')],
        raw_message={"role": "assistant", "content": parts},
    )
    model = ScriptedModel(reply, DONE)
    with running(model, backend=Backend(blocks=True)) as served, client(served) as made:
        first = ask(made, streamed, "a", tools=[types.Tool(function_declarations=[LOOK])])
        assert first.parts[0].thought_signature == b"sig"
        user = types.Content(role="user", parts=[types.Part(text="a")])
        answer = types.FunctionResponse(name="look", response={"x": 1})
        turn = types.Content(role="user", parts=[types.Part(function_response=answer)])
        ask(made, streamed, [user, types.Content(role="model", parts=first.parts), turn])
    asked = model.requests[1].messages or []
    assert asked[1].content == parts
    assert (asked[2].content, asked[2].name) == ('{"x":1}', "look")


@pytest.mark.parametrize("streamed", [False, True])
def test_errors_keep_their_kind(streamed: bool) -> None:
    raised: list[tuple[Any, int, str, str]] = [
        (ContextLimitError("9 > 8", status=400), 400, "INVALID_ARGUMENT", "input token count exceeds"),
        (RateLimitError("slow down"), 429, "RESOURCE_EXHAUSTED", "slow down"),
        (ServerError("busy", status=503), 503, "UNAVAILABLE", "busy"),
        (ServerError("broken", status=500), 500, "INTERNAL", "broken"),
    ]
    for error, code, status, words in raised:
        with running(ScriptedModel(error)) as served, client(served) as made:
            with pytest.raises(errors.APIError, match=words) as caught:
                ask(made, streamed, "a")
            assert (caught.value.code, caught.value.status) == (code, status)


def test_settings_choice_and_counting() -> None:
    model = ScriptedModel(Reply(text='{"a": 1}', finish_reason="length"))
    with running(model) as served, client(served) as made:
        done = ask(
            made,
            False,
            "a",
            temperature=0.25,
            top_p=0.5,
            seed=7,
            max_output_tokens=9,
            stop_sequences=["X"],
            response_mime_type="application/json",
            response_schema=types.Schema(type="OBJECT", properties={"a": types.Schema(type="INTEGER")}),
            tools=[types.Tool(function_declarations=[LOOK])],
            tool_config=types.ToolConfig(
                function_calling_config=types.FunctionCallingConfig(mode="ANY", allowed_function_names=["look"])
            ),
        )
        assert done.last.candidates[0].finish_reason == "MAX_TOKENS"
        assert made.models.count_tokens(model="gemini-x", contents="abcd" * 100).total_tokens > 99
        assert [found.name for found in made.models.list()] == ["models/scripted"]
    asked = model.requests[0]
    inference = asked.inference
    assert (inference.temperature, inference.top_p, inference.random_seed) == (0.25, 0.5, 7)
    assert (inference.tokens_to_generate, asked.stop) == (9, ["X"])
    assert asked.response_format["json_schema"]["schema"]["properties"] == {"a": {"type": "integer"}}
    assert asked.extra_body == {"tool_choice": {"type": "function", "function": {"name": "look"}}}


def test_a_slow_reply_is_streamed_after_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newskills.gateway.server.SILENCE", 0.05)
    with running(ScriptedModel(DONE, delay=0.5)) as served, client(served) as made:
        assert ask(made, True, "a").parts[0].text == DONE.text
    with running(ScriptedModel(ServerError("broken", status=500), delay=0.5)) as served, client(served) as made:
        refused = pytest.raises(errors.ServerError, match="broken")
        with refused:
            ask(made, True, "a")
