# SPDX-License-Identifier: Apache-2.0
"""The official `anthropic` client against the gateway, streamed and not."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx
import pytest
from tests.gateway.scripted import RunningGateway, ScriptedModel, call, running

from newskills.base.errors import ContentFilterError, ContextLimitError, RateLimitError, ServerError
from newskills.base.records import Reply, Request, Usage
from newskills.gateway.tasks import Backend

TOOLS: list[Any] = [
    {"name": name, "description": "x", "input_schema": {"type": "object", "properties": {}}}
    for name in ("Bash", "Read")
]
USED = Usage(input_tokens=11, output_tokens=7, cached_tokens=3)
CALLS = [call("c1", "Bash", '{"command":  "ls"}'), call("functions.Read:1", "Read", '{"path":"é","text":"\\n"}')]
WORK = Reply(text="Let me look.", reasoning="Two files.", finish_reason="tool_calls", usage=USED, tool_calls=CALLS)
DONE = Reply(text="Done: ünï 🙂\n" * 400, finish_reason="stop", usage=USED)
PIXEL = base64.b64encode(b"\x89PNG").decode()
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
USER: list[Any] = [{"role": "user", "content": "a"}]


@contextmanager
def client(served: RunningGateway, key: str = "x", retries: int = 0) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=f"{served.url}/t1", api_key=key, max_retries=retries, timeout=60) as made:
        yield made


def ask(made: Any, streamed: bool, **options: Any) -> Any:
    whole = {"model": "m", "max_tokens": 100, **options}
    if not streamed:
        return made.messages.create(**whole)
    with made.messages.stream(**whole) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
def test_thinking_parallel_calls_and_their_results(streamed: bool) -> None:
    model = ScriptedModel(WORK, DONE)
    system = [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=abc"},
        {"type": "text", "text": "Be good.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Also."},
    ]
    options = {"tools": [*TOOLS, {"type": "web_search_20250305", "name": "web_search"}], "system": system}
    with running(model) as served, client(served) as made:
        first = ask(made, streamed, messages=[{"role": "user", "content": [IMAGE]}], **options)
        assert [block.type for block in first.content] == ["thinking", "text", "tool_use", "tool_use"]
        assert (first.content[0].thinking, first.content[1].text) == ("Two files.", "Let me look.")
        assert [(b.id, b.name, b.input) for b in first.content[2:]] == [
            ("c1", "Bash", {"command": "ls"}),
            ("functions.Read:1", "Read", {"path": "é", "text": "\n"}),
        ]
        assert first.stop_reason == "tool_use"
        assert (first.usage.input_tokens, first.usage.cache_read_input_tokens, first.usage.output_tokens) == (
            8,
            3,
            7,
        )
        results = [
            {"type": "tool_result", "tool_use_id": "c1", "content": "a\nb"},
            {
                "type": "tool_result",
                "tool_use_id": "functions.Read:1",
                "content": [
                    {"type": "text", "text": "seen"},
                    {"type": "tool_reference", "tool_name": "Grep"},
                    IMAGE,
                ],
                "is_error": True,
            },
            {"type": "text", "text": "go on"},
        ]
        reminder = {"role": "system", "content": "Mind."}
        history = [
            {"role": "user", "content": [IMAGE]},
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
            {"role": "user", "content": results},
            reminder,
        ]
        last = ask(made, streamed, messages=history, **options)
    assert [(block.type, block.text) for block in last.content] == [("text", DONE.text)]
    assert last.stop_reason == "end_turn"
    asked = model.requests[1].messages or []
    assert [m.role for m in asked] == ["system", "user", "assistant", "tool", "tool", "user", "user"]
    assert asked[0].content == "Be good.\n\nAlso."
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert asked[1].content == [picture]
    assert (asked[2].content, asked[2].reasoning_content) == ("Let me look.", "Two files.")
    assert asked[2].tool_calls == CALLS  # to the letter, with the blanks of the model
    assert [(m.tool_call_id, m.content) for m in asked[3:5]] == [
        ("c1", "a\nb"),
        ("functions.Read:1", "seen\nThe tool Grep can be called now."),
    ]
    assert asked[6].content == "<system>\nMind.\n</system>"
    assert asked[5].content == [picture, {"type": "text", "text": "go on"}]
    assert [t["function"]["name"] for t in model.requests[0].tools or ()] == ["Bash", "Read"]


@pytest.mark.parametrize("streamed", [False, True])
def test_arguments_that_are_no_object_reach_the_program_and_come_back(streamed: bool) -> None:
    calls = [call("c1", "Bash", "ls -l"), call("c2", "Bash", "[1]"), call("", "Read", "")]
    model = ScriptedModel(Reply(text="", tool_calls=calls, finish_reason="tool_calls"), DONE)
    with running(model) as served, client(served) as made:
        first = ask(made, streamed, messages=USER, tools=TOOLS)
        assert [block.input for block in first.content] == [{"arguments": "ls -l"}, {"arguments": [1]}, {}]
        assert len({block.id for block in first.content}) == 3
        blocks = [block.model_dump(exclude_none=True) for block in first.content]
        results = [{"type": "tool_result", "tool_use_id": block.id} for block in first.content]
        turns = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        ask(made, streamed, messages=[*USER, *turns], tools=TOOLS)
    returned = (model.requests[1].messages or [])[1].tool_calls or []
    assert [c["function"]["arguments"] for c in returned] == ["ls -l", "[1]", ""]


@pytest.mark.parametrize("streamed", [False, True])
def test_signatures_of_a_backend_come_back_to_it(streamed: bool) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eHg="},
        {"type": "text", "text": "Now."},
        {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}},
    ]
    reply = Reply(
        text="Now.",
        reasoning="hm",
        finish_reason="tool_calls",
        tool_calls=[call("c1", "Bash", '{"command":"ls"}')],
        raw_message={"role": "assistant", "content": blocks},
    )
    model = ScriptedModel(reply, DONE)
    with running(model, backend=Backend(blocks=True)) as served, client(served) as made:
        first = ask(made, streamed, messages=USER, tools=TOOLS)
        assert [block.model_dump(exclude_none=True) for block in first.content[:2]] == blocks[:2]
        turns = [
            {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a"}]},
        ]
        ask(made, streamed, messages=[*USER, *turns], tools=TOOLS)
    assert (model.requests[1].messages or [])[1].content == blocks


def test_ends_of_replies() -> None:
    ends: list[tuple[Any, str]] = [
        (Reply(text="a", finish_reason="length"), "max_tokens"),
        (ContentFilterError("withheld", status=200), "refusal"),
        (Reply(text="a", finish_reason="stop", raw_message={"stop_reason": "X"}), "stop_sequence"),
        (Reply(text="", finish_reason=None), "end_turn"),
    ]
    for reply, reason in ends:
        for streamed in (False, True):
            with running(ScriptedModel(reply)) as served, client(served) as made:
                done = ask(made, streamed, messages=USER, stop_sequences=["X"])
                assert done.stop_reason == reason
                assert done.stop_sequence == ("X" if reason == "stop_sequence" else None)


@pytest.mark.parametrize("streamed", [False, True])
def test_errors_keep_their_kind(streamed: bool) -> None:
    errors: list[tuple[Any, Any, str, str]] = [
        (
            ContextLimitError("9 > 8", status=400),
            anthropic.BadRequestError,
            "invalid_request_error",
            "prompt is too long",
        ),
        (RateLimitError("slow down", retry_after=3.0), anthropic.RateLimitError, "rate_limit_error", "slow down"),
        (ServerError("busy", status=529), anthropic.APIStatusError, "overloaded_error", "busy"),
        (ServerError("broken", status=500), anthropic.InternalServerError, "api_error", "broken"),
    ]
    for raised, kind, name, words in errors:
        with running(ScriptedModel(raised)) as served, client(served) as made:
            with pytest.raises(kind, match=words) as caught:
                made.messages.create(model="m", max_tokens=9, messages=USER, stream=streamed)
            assert caught.value.body["error"]["type"] == name


def test_tokens_are_counted_and_estimated() -> None:
    async def count(request: Request) -> int:
        return 40 + len(request.messages or ())

    with running(ScriptedModel(DONE), count=count) as served, client(served) as made:
        assert made.messages.count_tokens(model="m", messages=USER, system="s").input_tokens == 42
        assert [model.id for model in made.models.list()] == ["scripted"]
    with running(ScriptedModel(DONE)) as served:
        body = {"model": "m", "messages": [{"role": "user", "content": "abcd" * 100}]}
        answer = httpx.post(f"{served.url}/v1/messages/count_tokens", json=body)
        assert answer.headers["x-newskills-tokens"] == "estimated"
        assert 100 <= answer.json()["input_tokens"] < 130


def test_a_slow_reply_is_streamed_after_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newskills.gateway.server.SILENCE", 0.05)
    with running(ScriptedModel(DONE, delay=0.5)) as served, client(served) as made:
        assert ask(made, True, messages=USER).content[0].text == DONE.text
        with made.messages.with_streaming_response.create(
            model="m", max_tokens=9, messages=USER, stream=True
        ) as raw:
            assert raw.read().count(b"event: ping") > 2
    with running(ScriptedModel(ServerError("broken", status=500), delay=0.5)) as served, client(served) as made:
        refused = pytest.raises(anthropic.APIStatusError, match="broken")
        with refused:
            ask(made, True, messages=USER)


def test_tool_choice_and_effort() -> None:
    model = ScriptedModel(DONE)
    with running(model) as served, client(served) as made:
        ask(
            made,
            False,
            messages=USER,
            tools=TOOLS,
            tool_choice={"type": "tool", "name": "Read", "disable_parallel_tool_use": True},
            thinking={"type": "adaptive"},
            output_config={"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        )
        with pytest.raises(anthropic.BadRequestError, match="cannot offer"):
            ask(made, False, messages=USER, tools=TOOLS, tool_choice={"type": "tool", "name": "Other"})
    asked = model.requests[0]
    assert asked.extra_body["tool_choice"] == {"type": "function", "function": {"name": "Read"}}
    assert asked.extra_body["parallel_tool_calls"] is False
    assert asked.inference.reasoning_effort == "low"
    assert asked.inference.tokens_to_generate == 100
    assert asked.response_format["json_schema"]["schema"] == {"type": "object"}
