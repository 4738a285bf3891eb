# SPDX-License-Identifier: Apache-2.0
"""Rows of training data in the forms that people have → texts, or a conversation that ends with a reply.

What a row says is used, or refused by name with what to do: Alpaca's `instruction`, a `system` key, reasoning that is
kept apart.
"""

from __future__ import annotations

from typing import Any

import msgspec

from newskills.base.errors import DataError
from newskills.base.records import Message, Row
from newskills.base.type_errors import type_fault
from newskills.train.data.row_fields import REASONING, SYSTEM, TOLD, field_text, reasoning_of, refuse_lost

MEDIA = ("images", "videos", "audios")
TEXT_ONLY = "These trainers train on text; remove the field, or the row."
_AS_MESSAGES = (
    "Texts are taken as they are: put it into `{text}`, or write the row as `messages`, or remove the field."
)


def training_row(row: Row, where: str) -> Row:
    """Return `{input, output}`, texts that are taken as they are, or `{messages, tools}`.

    Messages hold their reasoning as `reasoning_content`; the last one is a reply. Raises DataError for a row of neither
    form, with nothing to train on, or with a field that would be lost.
    """
    refuse_lost(row, MEDIA, "", where, TEXT_ONLY)
    if row.get("messages") is not None:
        return {"messages": _conversation(row, where), "tools": row.get("tools")}
    if (messages := alpaca_messages(row, where)) and isinstance(row.get("output"), str):
        reply = {"role": "assistant", "content": row["output"]}
        return training_row({"messages": [*messages, reply | _thought(row)], "tools": row.get("tools")}, where)
    before, output = row.get("input"), row.get("output")
    if not isinstance(before, str) or not isinstance(output, str):
        raise DataError(
            f"{where} has neither `input` and `output` nor `messages`; its keys are "
            f"{', '.join(sorted(row)) or 'none'}.",
            hint="ns prepare_training_data writes both forms.",
        )
    if not before or not output:
        empty = "output" if before else "input"
        raise DataError(f"{where}: `{empty}` is empty, so there is nothing to train on.")
    refuse_lost(row, TOLD, before, where, _AS_MESSAGES.format(text="input"))
    if reasoning_of(row):
        refuse_lost(row, REASONING, output, where, _AS_MESSAGES.format(text="output"))
    return {"input": before, "output": output}


def alpaca_messages(row: Row, where: str) -> list[Row]:
    """Return what a row with an `instruction` asks, as turns: system, and the instruction with its input below.

    Nothing for a row without one, or whose `input` holds it already. Raises DataError for a `history`.
    """
    instruction, addition = field_text(row, "instruction"), field_text(row, "input")
    if not instruction or instruction.strip() in addition:
        return []
    refuse_lost(row, ("history",), "", where, "Write the row as `messages`, or remove the field.")
    question = f"{instruction}\n\n{addition}" if addition else instruction
    return with_system([{"role": "user", "content": question}], row, where)


def with_system(messages: list[Row], row: Row, where: str) -> list[Row]:
    """Return `messages` behind the system message that `row` keeps in a key of its own. Raises DataError for two."""
    system = field_text(row, *SYSTEM)
    if not system:
        return messages
    first = messages[0] if messages and isinstance(messages[0], dict) else {}
    if first.get("role") not in ("system", "developer"):
        return [{"role": "system", "content": system}, *messages]
    refuse_lost(
        row,
        SYSTEM,
        str(first.get("content")),
        where,
        "The conversation has a system message of its own: put both into that one, or remove the field.",
    )
    return messages


def _thought(row: Row) -> Row:
    reasoning = reasoning_of(row)
    return {"reasoning_content": reasoning} if reasoning else {}


def _conversation(row: Row, where: str) -> list[Row]:
    """Return the messages of a row, with its system message, if any, in front. Raises DataError."""
    messages = row["messages"]
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or last.get("role") != "assistant":
        raise DataError(f"{where}: the last message is not a reply of the assistant.")
    if isinstance(last.get("content"), list):
        raise DataError(f"{where}: the content of the last message is a list of parts; write the reply as text.")
    try:
        msgspec.convert(messages, list[Message])
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: `messages` is not a conversation: {type_fault(error, messages)}.") from error
    weighted = any("weight" in message for message in messages)
    for number, message in enumerate(messages, 1):
        target = message.get("weight") if weighted else message is last
        _check_message(message, bool(target), f"{where}, message {number}")
    return with_system([message | _thought(message) for message in messages], row, where)


def _check_message(message: Row, is_target: bool, where: str) -> None:
    """Raise DataError for a message whose text is missing, or that says something in a field that is not used."""
    refuse_lost(message, ("function_call",), "", where, "Write it as `tool_calls`, or remove the field.")
    content: Any = message.get("content")
    if content is None and not message.get("tool_calls"):
        raise DataError(f"{where}: `content` is null or missing.", hint="Give a text, or remove the row.")
    if is_target and not content and not message.get("tool_calls"):
        raise DataError(f"{where}: `content` is empty, so there is nothing to train on.")
