# SPDX-License-Identifier: Apache-2.0
"""Which events of a stream bring tokens, as vLLM's benchmark has it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from newskills.models.decode import brings_tokens


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}], "usage": None}


TOKENS: tuple[Any, ...] = (
    delta(content="a"),
    delta(role="assistant", content="a"),
    delta(content=""),
    delta(reasoning="a"),
    delta(reasoning_content="a"),
    delta(tool_calls=[{"index": 0}]),
    {"choices": [{"text": "a"}]},
    {"choices": [{"text": "", "finish_reason": "stop"}]},
    {"type": "response.output_text.delta", "delta": "a"},
    {"type": "response.reasoning_text.delta", "delta": "a"},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
    {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
)
NONE: tuple[Any, ...] = (
    delta(role="assistant", content=""),
    delta(),
    {"choices": [], "usage": {"completion_tokens": 3}},
    {"type": "response.completed", "response": {}},
    {"type": "message_start", "message": {}},
    {"type": "ping"},
    {"error": {"message": "down"}},
    {"usageMetadata": {}},
    [],
    {"choices": "none"},
)


@pytest.mark.parametrize("event", TOKENS)
def test_events_with_tokens(event: Any) -> None:
    assert brings_tokens(msgspec.json.encode(event))


@pytest.mark.parametrize("event", NONE)
def test_events_without_tokens(event: Any) -> None:
    assert not brings_tokens(msgspec.json.encode(event))


def test_events_that_are_no_json() -> None:
    assert not brings_tokens(b"[DONE]")
    assert not brings_tokens(b"\xff{")
