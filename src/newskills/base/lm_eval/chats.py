# SPDX-License-Identifier: Apache-2.0
"""Conversations inside the texts of lm_eval: marked where the requests are made, rendered where they are sent.

So that prepared rows suit every endpoint: one that takes messages, and one that takes text by a template of the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from newskills.base.records import Message

_BEGIN, _END = "\ue000", "\ue001"
_MARKED = re.compile(f"{_BEGIN}([^{_END}]*){_END}")


def marked_conversation(messages: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
    """Return a conversation as lm_eval asks its model for one (`apply_chat_template`)."""
    return f"{_BEGIN}{json.dumps([messages, add_generation_prompt])}{_END}"


def messages_of(context: str) -> list[Message] | None:
    """Return the conversation that a context is; None for a text."""
    match = _MARKED.fullmatch(context)
    if match is None:
        return None
    return _parse_conversation(match)[0]


def has_chat(context: str) -> bool:
    """Return whether a conversation stands in a context."""
    return _MARKED.search(context) is not None


def render_context(context: str, render: Callable[[list[Message], bool], str]) -> str:
    """Return the context as a text; `render` gets the messages, and whether the model's turn is to begin."""
    return _MARKED.sub(lambda match: render(*_parse_conversation(match)), context)


def _parse_conversation(match: re.Match[str]) -> tuple[list[Message], bool]:
    messages, begins = json.loads(match[1])
    return [Message(role=turn["role"], content=turn["content"]) for turn in messages], begins
