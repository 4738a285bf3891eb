# SPDX-License-Identifier: Apache-2.0
"""Which tools must be called, in the words of each service, and token ids that servers tell."""

from __future__ import annotations

import pytest

from newskills.base.records import ReplyTokens, Row
from newskills.base.registry import load_function
from newskills.models import openai_chat
from newskills.models.errors import EndpointIdentity
from newskills.models.kinds import MODELS

NAMED: Row = {"type": "function", "function": {"name": "a"}}
CASES: list[tuple[str, str, str, bool | None, Row]] = [
    ("vllm", "auto", "", None, {}),
    ("vllm", "any", "", False, {"tool_choice": "required", "parallel_tool_calls": False}),
    ("openai", "any", "a", None, {"tool_choice": NAMED}),
    ("openai", "none", "", None, {"tool_choice": "none"}),
    ("anthropic", "auto", "", None, {}),
    ("anthropic", "auto", "", False, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
    ("anthropic", "any", "a", None, {"tool_choice": {"type": "tool", "name": "a"}}),
    ("anthropic", "none", "", True, {"tool_choice": {"type": "none"}}),
    ("gemini", "auto", "", True, {}),
    (
        "gemini",
        "any",
        "a",
        None,
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}}},
    ),
]


@pytest.mark.parametrize(("kind", "mode", "name", "parallel", "keys"), CASES)
def test_words_of_services(kind: str, mode: str, name: str, parallel: bool | None, keys: Row) -> None:
    assert load_function(MODELS.properties(kind).tool_choice)(mode, name, parallel, False) == keys


def test_responses_name_a_tool_in_its_own_way() -> None:
    keys = load_function(MODELS.properties("openai").tool_choice)("any", "a", None, True)
    assert keys == {"tool_choice": {"type": "function", "name": "a"}}


HERE = EndpointIdentity("http://x", "m", None, "")
VLLM = b"""{"prompt_token_ids": [1, 2], "choices": [{"message": {"content": "a"}, "finish_reason": "stop",
 "token_ids": [3, 4]}]}"""
LLAMACPP = b"""{"choices": [{"message": {"content": "a"}, "finish_reason": "stop",
 "logprobs": {"content": [{"id": 3, "token": "a", "logprob": -0.5}]}}]}"""


def test_token_ids_of_servers() -> None:
    assert openai_chat.decode_reply(VLLM, HERE).tokens == ReplyTokens(prompt=[1, 2], generated=[3, 4])
    assert openai_chat.decode_reply(LLAMACPP, HERE).tokens == ReplyTokens(generated=[3])
    assert openai_chat.decode_reply(VLLM.replace(b"[3, 4]", b"null"), HERE).tokens is None
