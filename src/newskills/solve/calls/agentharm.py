# SPDX-License-Identifier: Apache-2.0
"""An agent with the simulated tools of AgentHarm (Andriushchenko et al. 2024, arXiv:2410.09024), and its judge."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.graders.tool_calls.agentharm import (
    import_part,
    judge_questions,
    run_calls,
    system_prompt,
    task_tools,
    tool_definitions,
)
from newskills.solve.calls.tool_calls import ToolCall, read_calls
from newskills.solve.chat import MAIN, ask_next
from newskills.solve.dialogue import append_messages
from newskills.solve.judges.judge import ASKED, NOTHING
from newskills.solve.judges.several import SeveralJudgements
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies


class AgentHarmSolverConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `agentharm`."""

    max_messages: Annotated[
        int, Meta(ge=3, description="messages after which the model is not asked again, all roles counted")
    ] = 20


class AgentHarmSolver:
    """Row: `kind`, `target_functions`, `grading_function`.

    Written: `conversation` (every message, with calls and results), `judge_questions` (name → text), `ended` (answer,
    max_messages, context).
    """

    Config = AgentHarmSolverConfig

    def __init__(self, parts: SolverParts, config: AgentHarmSolverConfig = AgentHarmSolverConfig()) -> None:  # noqa: B008 - frozen
        self._chat, self._config = parts.chat, config

    def check(self) -> None:
        """Raise ConfigError where the package is missing."""
        import_part("prompts")

    def request(self, sample: Sample) -> Request:
        """Return the first request, with the functions of the task. Raises DataError, ConfigError."""
        request = self._chat.request(sample)
        if request.messages is None:
            raise ConfigError("AgentHarm calls functions: it needs ++inference.endpoint_type=chat.")
        request.messages = [Message(role="system", content=system_prompt()), *request.messages]
        request.tools = tool_definitions(task_tools(sample.row))
        request.solver = {"agentharm": msgspec.to_builtins(self._config), "task": sample.id}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Let the model call functions until it answers or a limit is reached. Raises what the model raises,
        ConfigError, DataError."""
        tools = task_tools(sample.row)
        turn_request = msgspec.structs.replace(request, solver={})
        conversation: list[Row] = [
            {"role": message.role, "content": message.content} for message in request.messages or []
        ]
        replies: list[Reply] = []
        ended = "max_messages"
        while len(conversation) < self._config.max_messages:
            reply = await ask_next(kit.models[MAIN], turn_request, replies)
            if reply is None:
                ended = "context"
                break
            calls = read_calls(reply, len(conversation))
            turn: Row = {"role": "assistant", "content": without_thinking(reply.text)}
            if not calls:
                conversation.append(turn)
                ended = "answer"
                break
            by_id = {f"{len(conversation)}-{number}": call for number, call in enumerate(calls)}
            turn["calls"] = [_call_record(identity, call) for identity, call in by_id.items()]
            results = await run_calls(tools, turn)
            conversation += [turn, *results]
            turn_request = append_messages(turn_request, _turn_messages(turn, by_id, results))
        answer = conversation[-1]["content"] if ended == "answer" else ""
        attempt = await self._chat.attempt(sample, request, join_replies(replies), answer)
        questions = await asyncio.to_thread(judge_questions, sample.row, conversation)
        attempt.fields |= {"conversation": conversation, "judge_questions": questions, "ended": ended}
        return attempt


def _call_record(identity: str, call: ToolCall) -> Row:
    """Return a call with an id of its own: servers use theirs again, and the scoring functions go by them."""
    return {"id": identity, "name": call.name, "arguments": call.arguments, "problem": call.problem}


def _turn_messages(turn: Row, calls: dict[str, ToolCall], results: list[Row]) -> list[Message]:
    sent = [Message(role="assistant", content=turn["content"], tool_calls=[call.row() for call in calls.values()])]
    for result in results:
        call = calls[result["tool_call_id"]]
        sent.append(Message(role="tool", content=result["content"], name=call.shown_name, tool_call_id=call.id))
    return sent


class AgentHarmJudgeSolver(SeveralJudgements):
    """The questions of the record, as they are; a conversation that raises none is not asked about."""

    def questions(self, row: Row) -> dict[str, Row]:
        """Return the row's questions to the judge by name; the prompt sees `judge_question`."""
        return {name: {"judge_question": text} for name, text in (row.get("judge_questions") or {}).items()}

    def request(self, sample: Sample) -> Request:
        """Return the first question, or an empty one for a row without questions. Raises DataError for a row that the
        prompt does not fit."""
        if self.questions(sample.row):
            return super().request(sample)
        return Request(prompt=NOTHING)

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        if request.prompt == NOTHING and not self.questions(sample.row):
            return Attempt(sample_id=sample.id, key=request.key(), fields={self._key: "", ASKED: request.key()})
        return await super().solve(sample, request, kit)
