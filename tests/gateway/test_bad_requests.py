# SPDX-License-Identifier: Apache-2.0
"""Requests with any part replaced by anything are read or refused, never a failure of the gateway."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.scripted import ScriptedModel, call

from newskills.base.protocols import Model
from newskills.base.records import Row
from newskills.gateway.form import GatewayProblem, ProgramProtocol, ProgramRequest, ReplyHead, encode_json
from newskills.gateway.recording import message_row
from newskills.gateway.routes import CHAT, GEMINI, MESSAGES, RESPONSES
from newskills.gateway.tasks import GatewayTask

SCHEMA: Row = {"type": "object", "properties": {"a": {"type": "string"}}}
IMAGE = "data:image/png;base64,eA=="
HEAD = ReplyHead(request=ProgramRequest(messages=[]), task="t", number=1, created=1)
GOOD: dict[ProgramProtocol, Row] = {
    CHAT: {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "s"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": IMAGE}}]},
            {"role": "assistant", "content": None, "tool_calls": [call("c", "a", "{}")]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [{"type": "function", "function": {"name": "a", "parameters": SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "a"}},
        "stream_options": {"include_usage": True},
        "stop": ["x"],
    },
    RESPONSES: {
        "model": "m",
        "input": [
            {"role": "user", "content": [{"type": "input_image", "image_url": IMAGE}]},
            {"type": "reasoning", "encrypted_content": "newskills:eA==", "summary": [{"text": "x"}]},
            {"type": "function_call", "call_id": "c", "name": "a", "arguments": "{}", "namespace": "n"},
            {"type": "custom_tool_call", "call_id": "d", "name": "b", "input": "x"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "r"}]},
        ],
        "tools": [
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "a", "parameters": SCHEMA}]},
            {"type": "custom", "name": "b", "format": {"type": "grammar", "definition": "g"}},
        ],
        "text": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
    },
    MESSAGES: {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://x"}}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t"},
                    {"type": "tool_use", "id": "c", "name": "a", "input": {"x": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "r"}]}
                ],
            },
        ],
        "tools": [{"name": "a", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "a"},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
    },
    GEMINI: {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "a", "args": {"x": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"output": "r"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "a", "parameters": {"type": "OBJECT"}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}},
        "generationConfig": {"temperature": 1, "responseMimeType": "application/json", "responseSchema": SCHEMA},
    },
}
ANYTHING: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1.5, "", "x", "\x00é", [], {}, [None], ["x"], [[]], [{}], {"type": "x"}, {"x": {}}]
)
"""What JSON can hold; it has no lone surrogates, which our decoder refuses."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([path] if path else []), *(place for key, item in inner for place in places(item, (*path, key)))]


def replaced(body: Row, path: tuple[Any, ...], value: Any) -> Row:
    changed = copy.deepcopy(body)
    target: Any = changed
    with contextlib.suppress(KeyError, IndexError, TypeError):  # an earlier change took the place away
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
    return changed


@pytest.mark.parametrize("protocol", GOOD, ids=lambda protocol: protocol.name)
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_any_change_is_read_or_refused(protocol: ProgramProtocol, data: st.DataObject) -> None:
    body = GOOD[protocol]
    for _ in range(data.draw(st.integers(1, 3))):
        body = replaced(body, data.draw(st.sampled_from(places(GOOD[protocol]))), data.draw(ANYTHING))
    model: Model = ScriptedModel()
    task = GatewayTask(model=model, forced=frozenset())
    problem = None
    try:
        request = task.to_send(protocol.read(body, "m", False))
    except GatewayProblem as raised:
        problem = raised
    if problem is None:
        assert request.messages
        encode_json([message_row(message) for message in request.messages])
    else:
        assert 400 <= problem.status < 500
        assert encode_json(protocol.error(problem))
        assert protocol.stream(HEAD).fail(problem).endswith(b"\n\n")


@pytest.mark.parametrize("protocol", GOOD, ids=lambda protocol: protocol.name)
def test_the_requests_are_good_as_they_are(protocol: ProgramProtocol) -> None:
    assert protocol.read(GOOD[protocol], "m", False).notes == []
