# SPDX-License-Identifier: Apache-2.0
"""An agent at work in a suite of AgentDojo, whose tools may give it an attacker's text (arXiv:2406.13352)."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.graders.tool_calls.agentdojo import (
    AgentDojoSession,
    attack_injections,
    task_suites,
    tool_definitions,
)
from newskills.solve.calls.tool_calls import ToolCall, read_calls
from newskills.solve.chat import MAIN, ask_next
from newskills.solve.dialogue import append_messages
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies


class AgentDojoSolverConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `agentdojo`."""

    attack: Annotated[str, Meta(description="attack of the package agentdojo")] = "important_instructions"
    model_name: Annotated[
        str,
        Meta(description="what attacks that address the model by name call it; empty: the attack's own default"),
    ] = "the AI language model"
    max_steps: Annotated[
        int, Meta(ge=1, description="largest number of replies with calls; further calls are not run")
    ] = 15


class AgentDojoSolver:
    """Row: `suite`, `user_task`, `injection_task`.

    Written: `injections`, `calls` (name and arguments, in order), `conversation`, `ended` (answer, max_steps, context).
    """

    Config = AgentDojoSolverConfig

    def __init__(self, parts: SolverParts, config: AgentDojoSolverConfig = AgentDojoSolverConfig()) -> None:  # noqa: B008 - frozen
        self._chat, self._config = parts.chat, config

    def check(self) -> None:
        """Raise ConfigError where the package is missing."""
        task_suites()

    def request(self, sample: Sample) -> Request:
        """Return the first request, with the functions of the row's suite. Raises DataError, ConfigError."""
        request = self._chat.request(sample)
        if request.messages is None:
            raise ConfigError("AgentDojo calls functions: it needs ++inference.endpoint_type=chat.")
        request.tools = tool_definitions(sample.row["suite"])
        request.solver = {"agentdojo": msgspec.to_builtins(self._config), "task": sample.id}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Let the model call functions until it answers or a limit is reached. Raises what the model raises,
        ConfigError, UnknownNameError."""
        row, config = sample.row, self._config
        texts = await asyncio.to_thread(attack_injections, row, config.attack, config.model_name)
        session = await asyncio.to_thread(AgentDojoSession, row, texts)
        turn_request = msgspec.structs.replace(request, solver={})
        replies: list[Reply] = []
        calls: list[Row] = []
        added: list[Row] = []
        ended = "max_steps"
        for step in range(config.max_steps + 1):
            reply = await ask_next(kit.models[MAIN], turn_request, replies)
            if reply is None:
                ended = "context"
                break
            wanted = read_calls(reply, len(calls))
            text = without_thinking(reply.text)
            added.append(_assistant_turn(text, wanted))
            if not wanted:
                ended = "answer"
                break
            if step < config.max_steps:
                messages = [Message(role="assistant", content=text, tool_calls=[call.row() for call in wanted])]
                for call in wanted:
                    messages.append(await asyncio.to_thread(_run_call, session, call, calls))
                added += [{"role": "tool", "content": message.content} for message in messages[1:]]
                turn_request = append_messages(turn_request, messages)
        answer = added[-1]["content"] if ended == "answer" else ""
        attempt = await self._chat.attempt(sample, request, join_replies(replies), answer)
        attempt.fields |= {"injections": texts, "calls": calls, "conversation": added, "ended": ended}
        return attempt


def _assistant_turn(text: str, calls: list[ToolCall]) -> Row:
    rows = [call.row() for call in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": rows} if rows else {})}


def _run_call(session: AgentDojoSession, call: ToolCall, calls: list[Row]) -> Message:
    """Return the call's result; calls that can be read are added to `calls`."""
    if call.problem:
        result = f"Error: {call.problem}"
    else:
        calls.append({"name": call.name, "arguments": call.arguments})
        result = session.call(call.name, call.arguments)
    return Message(role="tool", content=result, name=call.shown_name, tool_call_id=call.id)
