# SPDX-License-Identifier: Apache-2.0
"""The calls of a reply, read without trust: whatever a model or its server sends becomes a call or a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.records import Message, Reply, Row
from newskills.tools.exposed import safe_name

SHOWN = 500


class ToolCall(Struct, kw_only=True):
    """`problem` says why it cannot be run. `raw_arguments` is the text as it came."""

    id: str
    name: str
    arguments: Row = {}
    raw_arguments: str = ""
    problem: str = ""

    @property
    def shown_name(self) -> str:
        """The name in the signs that every API takes back."""
        return safe_name(self.name)

    def row(self) -> Row:
        """Return the call in OpenAI's shape, fit to be sent back.

        Arguments that are no JSON object become an empty one: servers parse them again when they render the
        conversation, and would refuse the request for the model's mistake.
        """
        arguments = "{}" if self.problem else msgspec.json.encode(self.arguments).decode()
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.shown_name, "arguments": arguments},
        }


def read_calls(reply: Reply, before: int) -> list[ToolCall]:
    """Return the calls that `reply` asks for; those without an id are numbered on from `before`."""
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for number, item in enumerate(reply.tool_calls or (), before):
        call = _read_call(item)
        if not call.id or call.id in taken:
            call.id = f"call_{number}"
        taken.add(call.id)
        calls.append(call)
    return calls


def result_messages(calls: Sequence[ToolCall], results: Sequence[str]) -> list[Message]:
    """Return the results of calls as messages of the role `tool`."""
    return [
        Message(role="tool", content=result, name=call.shown_name, tool_call_id=call.id)
        for call, result in zip(calls, results, strict=True)
    ]


def _read_call(item: Any) -> ToolCall:
    row = item if isinstance(item, dict) else {}
    function = row.get("function")
    function = function if isinstance(function, dict) else {}
    name, arguments = function.get("name"), function.get("arguments")
    identity = row.get("id")
    call = ToolCall(id=identity if isinstance(identity, str) else "", name=name if isinstance(name, str) else "")
    if isinstance(arguments, dict):
        call.arguments, call.raw_arguments = arguments, msgspec.json.encode(arguments).decode()
        return call
    call.raw_arguments = arguments if isinstance(arguments, str) else ""
    if call.raw_arguments.strip():
        call.arguments, call.problem = _parse_arguments(call.raw_arguments)
    if not call.name:
        call.problem = "the call names no tool"
    return call


def _parse_arguments(text: str) -> tuple[Row, str]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return {}, f"the arguments are no valid JSON ({error}). They were: {_shorten_text(text)}"
    if not isinstance(value, dict):
        return {}, f"the arguments must be a JSON object. They were: {_shorten_text(text)}"
    return value, ""


def _shorten_text(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    return f"{text[:SHOWN]}…"
