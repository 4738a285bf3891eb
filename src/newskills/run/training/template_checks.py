# SPDX-License-Identifier: Apache-2.0
"""Whether a chat template shows what a conversation holds beside texts: tools, calls of them, their results.

Names and values are replaced by marks, and each mark has to be in what the template makes of them: a template may
write calls in any form.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message, Row

_HINT = "Train another model, or give it a template that does (chat_template.jinja in its folder)."


def check_shown(
    tokenizer: Tokenizer, turns: Sequence[Message], tools: Sequence[Row] | None, variables: Row
) -> None:
    """Raise ConfigError where the chat template does not show the tools, a call of a tool or its result."""
    marked = [_mark_turn(turn, number) for number, turn in enumerate(turns)]
    if not tools and all(turn is own for turn, own in zip(marked, turns, strict=True)):
        return
    named = [_rename_tool(tool, f"tool{number}mark") for number, tool in enumerate(tools or ())]
    tool_variables = {"tools": named} if named else {}
    variables = {**variables, **tool_variables, "add_generation_prompt": False}
    shown = tokenizer.render(marked, **variables)
    expected = [
        *((f"tool{number}mark", "the tools that a row offers") for number in range(len(named))),
        *(
            (f"value{number}mark{place}", "the calls of tools in a reply")
            for number, turn in enumerate(turns)
            for place in range(len(turn.tool_calls or ()))
        ),
        *(
            (f"result{number}mark", "the results of tools")
            for number, turn in enumerate(turns)
            if turn.role == "tool"
        ),
    ]
    for mark, what in expected:
        if mark not in shown:
            raise ConfigError(
                f"The model's chat template does not show {what}, so they would be lost.", hint=_HINT
            )


def _mark_turn(turn: Message, number: int) -> Message:
    """Return a turn with marks in its calls or its result; the turn itself where it has neither."""
    if turn.role == "tool":
        return msgspec.structs.replace(turn, content=f"result{number}mark")
    if not turn.tool_calls:
        return turn
    calls = [
        {**call, "function": {**call.get("function", {}), "arguments": {"key": f"value{number}mark{place}"}}}
        for place, call in enumerate(turn.tool_calls)
    ]
    return msgspec.structs.replace(turn, tool_calls=calls)


def _rename_tool(tool: Row, name: str) -> Row:
    return {**tool, "function": {**tool.get("function", {}), "name": name}}
