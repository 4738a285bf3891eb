# SPDX-License-Identifier: Apache-2.0
"""Going on with an answer: what a model has said, and what it is shown of its code's output, in the next request."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Sequence

import msgspec

from newskills.base.errors import ConfigError, ContextLimitError, NewskillsError
from newskills.base.protocols import Model, Tokenizer
from newskills.base.records import Message, Reply, Request

GO_ON = "Go on."
"""The user turn between two turns of a chat model, which cannot go on with a turn of its own."""

CHARACTERS_PER_TOKEN = 3
"""Where nothing counts tokens: on the small side (prose has 4, code and digits 2 to 3), so that no budget is overrun
by much."""


async def ask(model: Model, request: Request) -> Reply:
    """Return the model's reply, with its times. Raises what the model raises."""
    began = time.time()
    reply = await model.complete(request)
    reply.started = reply.started or began
    reply.ended = reply.ended or time.time()
    return reply


async def ask_next(model: Model, request: Request, replies: list[Reply]) -> Reply | None:
    """Return the reply to the next turn of a conversation, and add it to `replies`; None where the conversation has
    outgrown the model's context.

    Raises ContextLimitError where not even the first turn fits, and what else the model raises.
    """
    try:
        reply = await ask(model, request)
    except ContextLimitError:
        if not replies:
            raise
        return None
    replies.append(reply)
    return reply


def append_messages(request: Request, messages: Sequence[Message]) -> Request:
    """Return the request with `messages` after its own."""
    return msgspec.structs.replace(request, messages=[*(request.messages or []), *messages])


def continued(request: Request, text: str, shown: str, reasoning: str | None = None) -> Request:
    """Continue `request` by the model's `text` and what is then `shown` to it.

    Text endpoint: both go to the end of the prompt. Chat: they become the assistant's turn (or the end of one that
    the prompt has begun), and a short user turn asks to go on, which every chat template and server takes.
    Raises ConfigError for a prompt of token ids.
    """
    if request.messages is None:
        if not isinstance(request.prompt, str):
            raise ConfigError("A prompt of token ids cannot be continued.")
        return msgspec.structs.replace(request, prompt=f"{request.prompt}{text}{shown}")
    messages = list(request.messages)
    begun = lead_text(request)
    if begun:
        messages.pop()
    turn = Message(role="assistant", content=f"{begun}{text}{shown}", reasoning_content=reasoning)
    return msgspec.structs.replace(request, messages=[*messages, turn, Message(role="user", content=GO_ON)])


def lead_text(request: Request) -> str:
    """Return the text that the model goes on from: the prompt, or the turn that was begun for it."""
    if request.messages is None:
        if isinstance(request.prompt, str):
            return request.prompt
        return ""
    last = request.messages[-1]
    if last.role == "assistant" and isinstance(last.content, str):
        return last.content
    return ""


def with_budget(request: Request, spent: int) -> Request | None:
    """Return `request` with `spent` tokens less to generate; None where nothing is left of them."""
    limit = request.inference.tokens_to_generate
    if limit is None:
        return request
    if limit <= spent:
        return None
    inference = msgspec.structs.replace(request.inference, tokens_to_generate=limit - spent)
    return msgspec.structs.replace(request, inference=inference)


async def generated_tokens(reply: Reply, counter: Tokenizer | None) -> int:
    """Return the tokens as the server reports them, else counted in what it sent."""
    if reply.usage.output_tokens is not None:
        return reply.usage.output_tokens
    return await count_tokens((reply.reasoning or "") + reply.text, counter)


async def count_tokens(text: str, counter: Tokenizer | None) -> int:
    """Count tokens with `counter`; without one, or where it fails, estimate a token for `CHARACTERS_PER_TOKEN`
    characters."""
    if counter is not None:
        with contextlib.suppress(NewskillsError):
            return len(await asyncio.to_thread(counter.encode, text))
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)
