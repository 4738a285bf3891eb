# SPDX-License-Identifier: Apache-2.0
"""Which functions would be called: each row brings its own tools, in one turn or in a conversation.

Calls of one turn are recorded and not run. In a conversation they run against the row's simulated services, and the
model goes on until it asks for none; then comes the next turn of the user.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.protocols import Kit, Model
from newskills.base.reading.reply_text import join_turns
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.graders.tool_calls.calls import ParsedCall
from newskills.graders.tool_calls.simulated import Services, check_services
from newskills.solve.calls.tool_calls import ToolCall, read_calls, result_messages
from newskills.solve.chat import MAIN, ask, ask_next
from newskills.solve.dialogue import append_messages
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

MOST_STEPS = 20
"""Requests of one turn, as on the leaderboard; a conversation that needs more ends there."""
MORE_TOOLS = "More functions are available now. Please go on with my last request."
CUT = "tool_call_limit_reached"


class FunctionCallSolver:
    """One request with the row's `tools`. Record field: `tool_calls`, `{"name", "arguments"}` for each.

    Arguments that are no JSON object stay the text that they are.
    """

    def __init__(self, parts: SolverParts) -> None:
        self._chat = parts.chat

    def request(self, sample: Sample) -> Request:
        """Return the request, with the row's tools. Raises DataError for a row without tools, or that the prompt does
        not fit."""
        request = self._chat.request(sample)
        request.tools = _row_tools(sample.row)
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        reply = await ask(kit.models[MAIN], request)
        attempt = await self._chat.attempt(sample, request, reply, self._chat.text(reply))
        attempt.fields["tool_calls"] = [_call_record(call) for call in read_calls(reply, 0)]
        return attempt


class Callee(Protocol):
    """What the calls of a conversation run against; whatever they ask for, nothing is raised."""

    def call(self, called: ParsedCall) -> str: ...


class CallConversation(Struct):
    """One conversation under way; `turns`: user turns → steps → calls."""

    asked: Request
    services: Callee
    replies: list[Reply] = []
    turns: list[list[list[Row]]] = []
    finish_reason: str | None = None


class ConversationCallSolver(FunctionCallSolver):
    """All turns of `question`. Record fields: `tool_call_turns`, `num_tool_calls`, token counts of all requests.

    A turn without a message brings the `late_tools` of its number. A conversation that goes in circles, or fills the
    model's context, ends; its record has fewer turns.
    """

    def check(self) -> None:
        """Raise ConfigError where the services are not installed."""
        check_services()

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Hold the row's conversation with services to call. Raises what the model raises, ConfigError where the
        services are not installed."""
        row = sample.row
        services = Services(
            row["involved_classes"], row["initial_config"], long_context="long_context" in sample.id
        )
        talk = CallConversation(asked=request, services=services)
        for number, messages in enumerate(row["question"]):
            if number:
                next_turn(talk, messages, row.get("late_tools", {}).get(str(number), []))
            if not await run_turn(talk, kit.models[MAIN]):
                break
        whole = join_replies(talk.replies)
        whole.finish_reason = talk.finish_reason or whole.finish_reason
        texts = [self._chat.text(reply) for reply in talk.replies]
        attempt = await self._chat.attempt(sample, request, whole, join_turns(list(filter(None, texts)), "\n"))
        attempt.fields |= {
            "tool_call_turns": talk.turns,
            "num_tool_calls": sum(len(step) for turn in talk.turns for step in turn),
        }
        return attempt


async def run_turn(talk: CallConversation, model: Model) -> bool:
    """Continue until no call is requested; return False where the conversation has to end."""
    steps: list[list[Row]] = []
    for _ in range(MOST_STEPS):
        reply = await ask_next(model, talk.asked, talk.replies)
        if reply is None:
            talk.finish_reason = "length"
            return False
        calls = read_calls(reply, sum(len(step) for step in steps))
        if not calls:
            talk.asked = append_messages(talk.asked, [Message(role="assistant", content=reply.text)])
            talk.turns.append(steps)
            return True
        steps.append([_call_record(call) for call in calls])
        results = await asyncio.to_thread(_run_calls, talk.services, calls)
        talk.asked = append_messages(
            talk.asked, [_assistant_message(reply, calls), *result_messages(calls, results)]
        )
    talk.finish_reason = CUT
    return False


def _row_tools(row: Row) -> list[Row] | None:
    """Return the tools; None where the list is empty, since servers refuse a request with no tool in it."""
    tools = row.get("tools")
    if not isinstance(tools, list):
        raise DataError(f"Record {row.get('id')} has no list of tools.")
    return tools or None


def next_turn(talk: CallConversation, messages: Sequence[Any], late: list[Row]) -> None:
    """Add the user's next messages, and tools that come with them."""
    replies = [msgspec.convert(message, Message) for message in messages] or [
        Message(role="user", content=MORE_TOOLS)
    ]
    talk.asked = append_messages(talk.asked, replies)
    if late:
        talk.asked = msgspec.structs.replace(talk.asked, tools=[*(talk.asked.tools or []), *late])


def _call_record(call: ToolCall) -> Row:
    return {"name": call.name, "arguments": call.raw_arguments if call.problem else call.arguments}


def _run_calls(services: Callee, calls: Sequence[ToolCall]) -> list[str]:
    """Run the calls in order, one after the other: each changes what the next one finds."""
    return [
        f"Error: {call.problem}" if call.problem else services.call(ParsedCall(call.name, call.arguments))
        for call in calls
    ]


def _assistant_message(reply: Reply, calls: Sequence[ToolCall]) -> Message:
    return Message(
        role="assistant",
        content=reply.text,
        tool_calls=[call.row() for call in calls],
        reasoning_content=reply.reasoning,
    )
