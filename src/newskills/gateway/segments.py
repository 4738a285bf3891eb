# SPDX-License-Identifier: Apache-2.0
"""Conversations and token sequences of a gateway's log.

An exchange goes on from the latest one of its task whose reply its history holds. A conversation ends where nothing
goes on from it, so branches, sub-agents and compacted histories are conversations of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from newskills.base.records import Row
from newskills.gateway.recording import GatewayLog, RecordedExchange


class Conversation(Struct, frozen=True, kw_only=True):
    """Exchanges that go on from each other; `new_from`: the first of them that no earlier conversation has."""

    task: str
    exchanges: list[RecordedExchange]
    new_from: int


class TokenSegment(Struct, frozen=True, kw_only=True):
    """A sequence to train on, as the server counted it: ids, which of them the model generated, their log-probabilities
    (0 for the others; an empty list where the server tells none)."""

    task: str
    ids: list[int]
    generated: list[bool]
    logprobs: list[float]


def read_conversations(log: GatewayLog) -> list[Conversation]:
    """Return the conversations of a log, in the order in which they began to differ."""
    previous: list[int | None] = []
    replies: dict[tuple[str, str], int] = {}
    for number, exchange in enumerate(log.exchanges):
        steps = log.steps(exchange.prompt)
        previous.append(next((replies[key] for node in steps if (key := (exchange.task, node)) in replies), None))
        if exchange.reply:
            replies[exchange.task, exchange.reply] = number
    inner = {number for number in previous if number is not None}
    taken: set[int] = set()
    result: list[Conversation] = []
    for leaf in range(len(log.exchanges)):
        if leaf in inner:
            continue
        chain: list[int] = []
        step: int | None = leaf
        while step is not None:
            chain.insert(0, step)
            step = previous[step]
        new_from = next(place for place, number in enumerate(chain) if number not in taken)
        taken.update(chain)
        exchanges = [log.exchanges[number] for number in chain]
        result.append(Conversation(task=exchanges[0].task, exchanges=exchanges, new_from=new_from))
    return result


def conversation_rows(log: GatewayLog) -> Iterator[Row]:
    """Yield each conversation as a record, in the form of agents' rollouts."""
    numbers: dict[str, int] = {}
    for conversation in read_conversations(log):
        number = numbers[conversation.task] = numbers.get(conversation.task, -1) + 1
        yield conversation_row(log, conversation, f"{conversation.task}-{number}")


def conversation_row(log: GatewayLog, conversation: Conversation, identity: str) -> Row:
    """Return a conversation as a record. The model's messages have `weight` 1 where no earlier record holds them, else
    0; messages of the program have none."""
    exchanges = conversation.exchanges
    last = exchanges[-1]
    weights: dict[str, int] = {}
    for place, exchange in enumerate(exchanges):
        if exchange.reply:
            weights[exchange.reply] = int(place >= conversation.new_from)
    steps = list(reversed(list(log.steps(last.reply or last.prompt))))
    messages = []
    for node in steps:
        message = dict(log.messages[node][1])
        if node in weights:
            message["weight"] = weights[node]
        messages.append(message)
    text: Any = ""
    if last.reply:
        text = log.messages[last.reply][1].get("content")
    row: Row = {
        "id": identity,
        "task": conversation.task,
        "problem": _first_text(messages),
        "generation": text if isinstance(text, str) else "",
        "conversation": messages,
        "num_steps": len(exchanges),
        "num_generated_tokens": sum(exchange.usage.get("output_tokens", 0) for exchange in exchanges),
        "num_input_tokens": sum(exchange.usage.get("input_tokens", 0) for exchange in exchanges),
        "generation_start_time": exchanges[0].began,
        "generation_end_time": round(last.began + last.seconds, 3),
        "protocol": last.protocol,
        "asked_model": last.model,
        "finish_reason": last.finish_reason,
    }
    if last.tools_id:
        row["tools"] = log.tools[last.tools_id]
    if notes := sorted({note for exchange in exchanges for note in exchange.notes}):
        row["gateway_notes"] = notes
    if last.error:
        row["error"] = last.error
    return row


def token_segments(log: GatewayLog) -> Iterator[TokenSegment]:
    """Yield what can be trained on without a tokenizer: exchanges whose prompt begins with all that came before, to the
    token, are one segment; where it does not, a new one begins. Exchanges without token ids yield nothing."""
    for conversation in read_conversations(log):
        ids: list[int] = []
        generated: list[bool] = []
        logprobs: list[float] = []
        for exchange in conversation.exchanges[conversation.new_from :]:
            prompt, reply = log.token_ids(exchange)
            if not prompt or not reply:
                continue
            if ids and prompt[: len(ids)] != ids:
                yield TokenSegment(task=conversation.task, ids=ids, generated=generated, logprobs=logprobs)
                ids, generated, logprobs = [], [], []
            fresh = prompt[len(ids) :]
            has_logprobs = len(exchange.logprobs) == len(reply) and len(logprobs) == len(ids)
            ids = [*ids, *fresh, *reply]
            generated = [*generated, *(False for _ in fresh), *(True for _ in reply)]
            logprobs = [*logprobs, *(0.0 for _ in fresh), *exchange.logprobs] if has_logprobs else []
        if ids:
            yield TokenSegment(task=conversation.task, ids=ids, generated=generated, logprobs=logprobs)


def _first_text(messages: list[Row]) -> str:
    for message in messages:
        content = message.get("content")
        if message.get("role") == "user":
            if isinstance(content, list):
                content = "\n".join(str(part.get("text") or "") for part in content)
            return str(content or "")
    return ""
