# SPDX-License-Identifier: Apache-2.0
"""What to do, once, when prompt and generation exceed the context: shorter generation, or a trimmed prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import msgspec

from newskills.base.chat_template import prompt_ids
from newskills.base.errors import ContextLimitError
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message, Request, Row
from newskills.models.config import ContextStrategy
from newskills.models.errors import context_numbers

T = TypeVar("T")
Side = Literal["start", "end"]


def shorten_request(
    strategy: ContextStrategy | None,
    request: Request,
    error: ContextLimitError,
    tokenizer: Tokenizer | None,
    budget: int,
) -> Request | None:
    """Return the request to try once more after `error`, or None where `strategy` cannot help.

    `budget` tokens stay free for what templates add.
    """
    if strategy == "reduce_generation":
        return reduce_generation(request, error, tokenizer, budget)
    if strategy is None or tokenizer is None:
        return None
    if strategy == "reduce_prompt_from_start":
        return reduce_prompt(request, error, tokenizer, "start", budget)
    return reduce_prompt(request, error, tokenizer, "end", budget)


def reduce_generation(
    request: Request, error: ContextLimitError, tokenizer: Tokenizer | None, budget: int
) -> Request | None:
    """Return the request with a new limit of generated tokens: context minus prompt minus `budget`; None where that is
    none, or no less.

    A prompt length that the server does not tell is counted with `tokenizer`.
    """
    if error.limit is None:
        return None
    prompt = error.prompt_tokens
    if prompt is None and tokenizer is not None:
        prompt = _prompt_tokens(request, tokenizer)
    if prompt is None or (left := error.limit - prompt - budget) < 1:
        return None
    wanted = request.inference.tokens_to_generate
    if wanted is not None and wanted <= left:
        return None
    inference = msgspec.structs.replace(request.inference, tokens_to_generate=left)
    return msgspec.structs.replace(request, inference=inference)


def reduce_prompt(
    request: Request, error: ContextLimitError, tokenizer: Tokenizer, side: Side, budget: int
) -> Request | None:
    """Return the request with the prompt trimmed at `side` so that the wanted generation and `budget` fit; system
    messages stay whole.

    None where the generation's length is not set, fills the context alone, or nothing would be left of the prompt.
    """
    excess = _excess_tokens(request, error, tokenizer, budget)
    if excess is None or excess < 1:
        return None
    if request.messages is not None:
        messages = _trim_messages(request.messages, excess, tokenizer, side)
        if messages is None:
            return None
        return msgspec.structs.replace(request, messages=messages)
    if request.prompt is None:
        return None
    ids = tokenizer.encode(request.prompt) if isinstance(request.prompt, str) else request.prompt
    kept = _cut_ids(ids, excess, side)
    if not kept:
        return None
    if isinstance(request.prompt, str):
        return msgspec.structs.replace(request, prompt=tokenizer.decode(kept))
    return msgspec.structs.replace(request, prompt=kept)


def _excess_tokens(request: Request, error: ContextLimitError, tokenizer: Tokenizer, budget: int) -> int | None:
    wanted = request.inference.tokens_to_generate
    if wanted is None:
        return None
    if (overflow := context_numbers(error.message).overflow) is not None:
        return overflow + wanted + budget
    if error.limit is None or (keep := error.limit - wanted - budget) < 1:
        return None
    prompt = error.prompt_tokens
    if prompt is None:
        prompt = _prompt_tokens(request, tokenizer)
    if prompt is None:
        return None
    return prompt - keep


def _prompt_tokens(request: Request, tokenizer: Tokenizer) -> int | None:
    if request.messages is None and request.prompt is None:
        return None
    return len(prompt_ids(request, tokenizer))


def _trim_messages(messages: list[Message], excess: int, tokenizer: Tokenizer, side: Side) -> list[Message] | None:
    trimmed = list(messages)
    for index in _from_side(range(len(messages)), side):
        message = messages[index]
        if excess < 1:
            break
        if message.role in ("system", "developer") or message.content is None:
            continue
        content, removed = _trim_content(message.content, excess, tokenizer, side)
        excess -= removed
        trimmed[index] = msgspec.structs.replace(message, content=content)
    left = any(message.content for message in trimmed if message.role not in ("system", "developer"))
    if excess >= 1 or not left:
        return None
    return trimmed


def _trim_content(
    content: str | list[Row], excess: int, tokenizer: Tokenizer, side: Side
) -> tuple[str | list[Row], int]:
    if isinstance(content, str):
        ids = tokenizer.encode(content)
        kept = _cut_ids(ids, excess, side)
        text = tokenizer.decode(kept) if kept else ""
        return text, len(ids) - len(kept)
    parts, removed = [dict(part) for part in content], 0
    for part in _from_side(parts, side):
        if removed < excess and part.get("type") == "text" and isinstance(part.get("text"), str):
            part["text"], gone = _trim_content(part["text"], excess - removed, tokenizer, side)
            removed += gone
    return parts, removed


def _cut_ids(ids: Sequence[int], excess: int, side: Side) -> list[int]:
    if side == "start":
        return list(ids[excess:])
    return list(ids[: max(0, len(ids) - excess)])


def _from_side(items: Sequence[T], side: Side) -> Iterable[T]:
    """Return the items in the order in which they are trimmed."""
    if side == "start":
        return items
    return reversed(items)
