# SPDX-License-Identifier: Apache-2.0
"""Turns of training rows in the forms that people have → messages of the chat form, or a refusal that names the field.

Chat form: `role`, `content` (a text), `tool_calls`, `tool_call_id`, `name`, `reasoning_content`, `weight`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from newskills.base.errors import DataError
from newskills.base.records import Message, Row
from newskills.base.type_errors import type_fault
from newskills.train.data.row_fields import reasoning_of, refuse_lost

ROLES = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "observation": "tool",
    "function": "tool",
    "function_call": "assistant",
}
"""Role of ShareGPT's rows and their kin → role of the chat form; others stay as they are."""
CALL = "function_call"
"""The role of a turn of LLaMA-Factory whose text is a call, or a list of calls, as JSON."""
REPLY = "assistant"
_MASKS = ("train", "training", "loss", "loss_mask", "mask")
"""Fields of other trainers that say whether a message counts."""


def turns_of(value: Any, where: str, field: str = "messages") -> list[Row]:
    """Return the turns of `value` in the chat form: ShareGPT's keys and roles are translated, parts of text joined,
    reasoning is `reasoning_content`.

    Raises DataError for what is no conversation, and for a field that would be lost.
    """
    if not isinstance(value, list) or not value or not all(isinstance(turn, dict) for turn in value):
        raise DataError(f"{where}: `{field}` is not a list of messages.")
    turns = [_chat_turn(turn, f"{where}, message {number}") for number, turn in enumerate(value, 1)]
    try:
        msgspec.convert(turns, list[Message])
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: `{field}` is not a conversation: {type_fault(error, turns)}.") from error
    for number, turn in enumerate(turns, 1):
        if turn.get("content") is None and not turn.get("tool_calls"):
            raise DataError(
                f"{where}, message {number}: `content` is null or missing.", hint="Give a text, or remove the row."
            )
    return turns


def check_targets(turns: list[Row], where: str) -> None:
    """Raise DataError where a conversation does not end with a reply, or a reply that counts has nothing to learn.

    The last reply counts; where messages have a `weight`, those with 1 do.
    """
    if turns[-1]["role"] != REPLY:
        raise DataError(f"{where}: the last message is not a reply of the assistant.")
    weighted = any("weight" in turn for turn in turns)
    for number, turn in enumerate(turns, 1):
        counts = turn.get("weight") if weighted else turn is turns[-1]
        if counts and turn["role"] != REPLY:
            raise DataError(
                f"{where}, message {number}: `weight` is 1, but only replies of the assistant can be trained on."
            )
        if counts and not turn.get("content") and not turn.get("tool_calls"):
            raise DataError(f"{where}, message {number}: `content` is empty, so there is nothing to train on.")


def tools_of(row: Row, where: str) -> list[Row] | None:
    """Return the tools that a row offers, in OpenAI's form; a text is read as JSON, as TRL does.

    Raises DataError for what describes no tools, and for `functions`.
    """
    refuse_lost(row, ("functions",), "", where, "Write them as `tools`, or remove the field.")
    tools = row.get("tools")
    if isinstance(tools, str):
        tools = _decode_json(tools, f"{where}: `tools`") if tools.strip() else None
    if not tools:
        return None
    if not isinstance(tools, list) or not all(isinstance(_function_of(tool).get("name"), str) for tool in tools):
        raise DataError(
            f"{where}: `tools` is not a list of tools.",
            hint='A tool is {"type": "function", "function": {"name": …, "parameters": …}}.',
        )
    return [tool if "function" in tool else {"type": "function", "function": tool} for tool in tools]


def template_of(row: Row, where: str) -> Row:
    """Return the variables of the chat template that a row sets (`chat_template_kwargs`). Raises DataError."""
    variables = row.get("chat_template_kwargs") or {}
    if not isinstance(variables, dict):
        raise DataError(f"{where}: `chat_template_kwargs` is not an object.")
    return variables


def _chat_turn(turn: Row, where: str) -> Row:
    """Return a turn in the chat form. Raises DataError."""
    kind = turn.get("role", turn.get("from"))
    text = turn["content"] if "content" in turn else turn.get("value")
    lost = ("images", "audio", "refusal", *_MASKS)
    refuse_lost(turn, lost, "", where, "Only text is trained on; which messages count, `weight` (0 or 1) says.")
    for name in _MASKS:
        if isinstance(turn.get(name), bool | int):
            raise DataError(f"{where}: the field `{name}` would be lost.", hint="Write it as `weight` (0 or 1).")
    made = {name: value for name, value in turn.items() if name not in ("from", "value")}
    role = ROLES.get(kind, kind) if isinstance(kind, str) else kind
    made |= {"role": role, "content": _join_text_parts(text, where)}
    if kind == CALL:
        made |= {"content": None, "tool_calls": _written_calls(text, where)}
    else:
        refuse_lost(turn, ("function_call",), "", where, "Write it as `tool_calls`, or remove the field.")
    if made.get("tool_calls"):
        _check_calls(made, where)
    weight = turn.get("weight")
    if weight is not None and weight not in (0, 1):
        raise DataError(f"{where}: `weight` is {weight}; it is 0 or 1.")
    if reasoning := reasoning_of(turn):
        made["reasoning_content"] = reasoning
    return made


def _join_text_parts(content: Any, where: str) -> Any:
    """Return a content that is a list of parts as one text. Raises DataError for parts of another type."""
    if not isinstance(content, list):
        return content
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type", "text") == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise DataError(
                f"{where}: `content` has a part of the type `{kind}`, which would be lost.",
                hint="These trainers train on text; write what it says as a part of the type `text`.",
            )
    return "".join(texts)


def _check_calls(turn: Row, where: str) -> None:
    """Raise DataError for calls of another role than the assistant's, or without the name of a function."""
    if turn["role"] != REPLY:
        raise DataError(f"{where}: `tool_calls` stands in a message of the role `{turn['role']}`.")
    calls = turn["tool_calls"]
    if not isinstance(calls, list) or not all(isinstance(_function_of(call).get("name"), str) for call in calls):
        raise DataError(
            f"{where}: `tool_calls` is not a list of calls.",
            hint='A call is {"type": "function", "function": {"name": …, "arguments": …}}.',
        )


def _written_calls(text: Any, where: str) -> list[Row]:
    calls = _decode_json(text, f"{where}: `value`") if isinstance(text, str) else text
    every = calls if isinstance(calls, list) else [calls]
    return [{"type": "function", "function": call} for call in every]


def _function_of(value: Any) -> Row:
    """Return the function of a tool or a call, whether it is wrapped or not."""
    if not isinstance(value, dict):
        return {}
    function = value.get("function", value)
    if isinstance(function, dict):
        return function
    return {}


def _decode_json(text: str, where: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise DataError(f"{where} is not JSON: {error}.") from error
