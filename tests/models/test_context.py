# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ContextLimitError
from newskills.base.records import Inference, Message, Request
from newskills.models.config import ContextStrategy
from newskills.models.context import shorten_request


class Letters:
    """One token a letter, and two more for each message."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def render(self, messages: Sequence[Message], **template_kwargs: Any) -> str:
        return "".join(f"<{message.content}>" for message in messages)


def request(messages: list[Message] | None = None, prompt: Any = None, new: int | None = 40) -> Request:
    return Request(messages=messages, prompt=prompt, inference=Inference(tokens_to_generate=new))


def limit(context: int | None = 100, prompt: int | None = None, message: str = "too long") -> ContextLimitError:
    return ContextLimitError(message, limit=context, prompt_tokens=prompt)


@pytest.mark.parametrize(
    ("error", "wanted", "left"),
    [
        (limit(100, 70), 40, 20),
        (limit(100, 70), None, 20),
        (limit(100, 70), 5, None),
        (limit(100, 90), 40, None),
        (limit(None, 70), 40, None),
        (limit(100, None), 80, 60),
    ],
)
def test_the_generation_is_reduced(error: ContextLimitError, wanted: int | None, left: int | None) -> None:
    asked = request(prompt="x" * 30, new=wanted)
    again = shorten_request("reduce_generation", asked, error, Letters(), 10)
    assert (again.inference.tokens_to_generate if again else None) == left


def test_an_unknown_prompt_length_needs_a_tokenizer() -> None:
    assert shorten_request("reduce_generation", request(prompt="x"), limit(), None, 10) is None


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [("reduce_prompt_from_start", "fghij"), ("reduce_prompt_from_end", "abcde"), (None, None)],
)
def test_a_text_is_trimmed_at_its_side(strategy: ContextStrategy | None, kept: str | None) -> None:
    again = shorten_request(strategy, request(prompt="abcdefghij"), limit(50), Letters(), 5)
    assert (again.prompt if again else None) == kept


def test_token_ids_are_trimmed() -> None:
    again = shorten_request("reduce_prompt_from_end", request(prompt=list(range(10))), limit(50), Letters(), 5)
    assert again is not None
    assert again.prompt == [0, 1, 2, 3, 4]


def test_an_overflow_is_added_to_what_is_wanted() -> None:
    error = limit(None, message="max_tokens must be at least 1, got -3")
    again = shorten_request("reduce_prompt_from_end", request(prompt="x" * 100, new=40), error, Letters(), 5)
    assert again is not None
    assert len(str(again.prompt)) == 100 - (3 + 40 + 5)


CHAT = [
    Message(role="system", content="SYSTEM"),
    Message(role="user", content="aaaa"),
    Message(role="assistant", content=None, tool_calls=[{"id": "1"}]),
    Message(role="user", content=[{"type": "text", "text": "bbbb"}, {"type": "image_url", "image_url": "u"}]),
    Message(role="user", content="cccc"),
]


@pytest.mark.parametrize(
    ("strategy", "texts"),
    [
        ("reduce_prompt_from_start", ["SYSTEM", "", None, "bb", "cccc"]),
        ("reduce_prompt_from_end", ["SYSTEM", "aaaa", None, "bb", ""]),
    ],
)
def test_a_chat_is_trimmed_but_for_its_system_message(strategy: ContextStrategy, texts: list[str | None]) -> None:
    again = shorten_request(strategy, request(CHAT), limit(100, 61), Letters(), 5)
    assert again is not None
    assert again.messages is not None
    found = [m.content[0]["text"] if isinstance(m.content, list) else m.content for m in again.messages]
    assert found == texts
    assert CHAT[1].content == "aaaa"
    assert again.messages[2].tool_calls == [{"id": "1"}]


def test_nothing_is_tried_where_nothing_would_be_left() -> None:
    for asked in (request(CHAT), request(prompt="abc"), request(prompt=[1, 2])):
        assert shorten_request("reduce_prompt_from_end", asked, limit(100, 500), Letters(), 5) is None
    assert (
        shorten_request("reduce_prompt_from_end", request(prompt="abc", new=None), limit(), Letters(), 5) is None
    )
    assert (
        shorten_request("reduce_prompt_from_end", request(prompt="abc", new=100), limit(100), Letters(), 5) is None
    )


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 300), st.integers(0, 20))
def test_what_is_tried_again_fits(length: int, wanted: int, context: int, budget: int) -> None:
    strategies: tuple[ContextStrategy, ...] = (
        "reduce_generation",
        "reduce_prompt_from_start",
        "reduce_prompt_from_end",
    )
    for strategy in strategies:
        asked = request(prompt="x" * length, new=wanted)
        again = shorten_request(strategy, asked, limit(context, length), Letters(), budget)
        if again is not None:
            assert again.inference.tokens_to_generate is not None
            assert len(str(again.prompt)) + again.inference.tokens_to_generate + budget <= max(
                context, length + wanted
            )
            assert len(str(again.prompt)) >= 1
