# SPDX-License-Identifier: Apache-2.0
"""Environments of NeMo Gym: its resources server begins a session, has tools, and gives the reward.

The model is asked as Gym's own `simple_agent` does it: until a reply calls no tool. Tools get what the model wrote,
and their answers go back to it word by word.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, DataError, EnvironmentFailedError
from newskills.base.http.client import HttpClient
from newskills.base.http.proxy import proxy_for
from newskills.base.protocols import Kit, Model
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.gateway.form import GatewayProblem, ProgramRequest, Served
from newskills.gateway.protocols.responses import ResponsesProtocol
from newskills.gateway.tasks import openai_choice
from newskills.solve.calls.tool_calls import ToolCall, read_calls
from newskills.solve.chat import MAIN, ask_next
from newskills.solve.interactive.gym_program import gym_server
from newskills.solve.interactive.gym_session import TASK, GymSession
from newskills.solve.interactive.shared import SharedContext
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

CONNECTIONS = 1024
AGGREGATION = 600.0
"""Seconds that a server may take for the figures of all verdicts."""
CUT = ("length", "content_filter")
PROTOCOL = ResponsesProtocol()
NO_TOOL = '{"detail":"Not Found"}'
"""What a server says of a tool that it does not have. Others of its addresses (/verify) are none of the model's."""


class GymConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `nemo_gym`."""

    max_turns: Annotated[int, Meta(ge=1, description="requests per task")] = 100
    timeout: Annotated[float, Meta(gt=0, description="seconds for one answer of the server")] = 1800.0


class GymSolver:
    """Row: `environment` (address of the server, or name of a configuration), `gym_row` (the row as Gym has it).

    Written: `reward`, `verified` (what the server says beside it), `conversation`, `exit_status` (completed, length,
    turns, context), `num_tool_calls`, and token counts over all requests.
    """

    Config = GymConfig

    def __init__(self, parts: SolverParts, config: GymConfig = GymConfig()) -> None:  # noqa: B008 - frozen
        self._chat, self._config = parts.chat, config
        self._shared: dict[str, SharedContext[HttpClient]] = {}

    @staticmethod
    async def aggregate(seeds: Sequence[Sequence[Row]]) -> tuple[Row, Row]:
        """Return the figures that the server makes of all verdicts, and its main ones. Raises ConfigError,
        EnvironmentFailedError."""
        verdicts = [
            {
                **{name: value for name, value in record["gym_row"].items() if name != TASK},
                **record["verified"],
                "reward": record["reward"],
                "_ng_task_index": task,
                "_ng_rollout_index": number,
                "response": {"usage": {"output_tokens": record.get("num_generated_tokens") or 0}},
            }
            for number, records in enumerate(seeds)
            for task, record in enumerate(records)
            if "verified" in record
        ]
        if not verdicts:
            return {}, {}
        environment = next(record["environment"] for records in seeds for record in records)
        async with _connect_client(environment) as client:
            figures = await GymSession(client, {}, AGGREGATION).aggregate(verdicts)
        return figures, figures.get("key_metrics") or {}

    def request(self, sample: Sample) -> Request:
        """Return the first request. Raises DataError for a row that is no task of NeMo Gym, ConfigError."""
        row = sample.row
        if not isinstance(row.get("environment"), str) or not isinstance(row.get("gym_row"), dict):
            raise DataError(f"Row {sample.id} is no task of NeMo Gym: it needs `environment` and `gym_row`.")
        program = read_task(row["gym_row"], f"Row {sample.id}")
        messages = [msgspec.to_builtins(message) for message in program.messages]
        request = self._chat.request(msgspec.structs.replace(sample, row={**row, "messages": messages}))
        if request.messages is None:
            raise ConfigError("NeMo Gym's tasks are conversations: they need ++inference.endpoint_type=chat.")
        if program.tools:
            request.tools = program.tools
            request.extra_body = {**request.extra_body, **openai_choice(program.choice)}
        request.response_format = program.response_format or request.response_format
        request.solver = {"gym": row["environment"], "row": row["gym_row"], "max_turns": self._config.max_turns}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Play a session. Raises what the model raises, and EnvironmentFailedError without a reward that counts."""
        began = time.monotonic()
        address, row = str(sample.row["environment"]), sample.row["gym_row"]
        shared = self._shared.setdefault(
            address, SharedContext(lambda: _connect_client(address), keep=not is_address(address))
        )
        episode = _GymEpisode(
            name=sample.id, program=read_task(row, f"Row {sample.id}"), asked=request, replies=[], output=[]
        )
        async with shared.use() as client:
            session = GymSession(client, row, self._config.timeout)
            await session.seed()
            while not episode.ended:
                await self._turn(episode, session, kit.models[MAIN])
            verdict = await session.verify(episode.response)
        if verdict.masked:
            raise EnvironmentFailedError(f"{address} says that this sample does not count: {verdict.masked}.")
        whole = join_replies(episode.replies)
        whole.finish_reason = "length" if episode.ended in ("context", "turns") else whole.finish_reason
        attempt = await self._chat.attempt(sample, request, whole, self._chat.text(episode.replies[-1]))
        attempt.fields |= {
            "reward": verdict.reward,
            "verified": verdict.fields,
            "num_tool_calls": episode.calls,
            "exit_status": episode.ended,
            "conversation": [msgspec.to_builtins(message) for message in episode.asked.messages or ()],
            "agent_seconds": round(time.monotonic() - began, 3),
        }
        return attempt

    async def _turn(self, episode: _GymEpisode, session: GymSession, model: Model) -> None:
        """Get one reply, and the answers to what it calls."""
        reply = await ask_next(model, episode.asked, episode.replies)
        if reply is None:
            episode.ended = "context"
            return
        calls = read_calls(reply, episode.calls)
        fields = self._chat.fields(reply, self._chat.text(reply))
        episode.add_reply(reply, calls, str(fields[self._chat.generation_key]), fields.get("reasoning_content"))
        if reply.finish_reason in CUT:
            episode.ended = "length"
        elif not calls:
            episode.ended = "completed"
        else:
            for call in calls:
                episode.add_result(call, await _call_result(session, call, episode.program))
            if len(episode.replies) >= self._config.max_turns:
                episode.ended = "turns"


class _GymEpisode(Struct, kw_only=True):
    """What happened so far: the next request, and the response that is verified."""

    name: str
    program: ProgramRequest
    asked: Request
    replies: list[Reply] = []
    output: list[Row] = []
    calls: int = 0
    ended: str = ""
    body: Row = {}

    @property
    def response(self) -> Row:
        """The response over all turns, as OpenAI's Responses have it."""
        cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        return {**self.body, "output": self.output, **(cut if self.ended == "context" else {})}

    def add_reply(self, reply: Reply, calls: Sequence[ToolCall], text: str, reasoning: str | None) -> None:
        """Add a reply."""
        functions = [
            {"id": call.id, "function": {"name": call.name, "arguments": call.raw_arguments}} for call in calls
        ]
        shown = msgspec.structs.replace(reply, text=text, reasoning=reasoning, tool_calls=functions or None)
        number = len(self.replies)
        self.body = PROTOCOL.answer(
            Served(request=self.program, reply=shown, task=self.name, number=number, created=int(time.time()))
        )
        self.output += self.body["output"]
        raw = (reply.raw_message or {}).get("content")
        turn = Message(
            role="assistant",
            content=raw if isinstance(raw, list) else reply.text,  # blocks of a provider go back as they came
            tool_calls=[call.row() for call in calls] or None,
            reasoning_content=reply.reasoning,
        )
        self._add(turn)

    def add_result(self, call: ToolCall, result: str) -> None:
        """Add what a tool gave back."""
        self.calls += 1
        self.output.append({"type": "function_call_output", "call_id": call.id, "output": result})
        self._add(Message(role="tool", content=result, name=call.shown_name, tool_call_id=call.id))

    def _add(self, message: Message) -> None:
        self.asked = msgspec.structs.replace(self.asked, messages=[*(self.asked.messages or ()), message])


def read_task(row: Row, where: str) -> ProgramRequest:
    """Read what a row of NeMo Gym asks of the model. Raises DataError."""
    task = row.get(TASK)
    if not isinstance(task, dict):
        raise DataError(
            f"{where} is no task of NeMo Gym: it has no `{TASK}`.",
            hint=f"Its keys are: {', '.join(sorted(row)[:20])}.",
        )
    try:
        return PROTOCOL.read(task, "policy", False)
    except GatewayProblem as problem:
        raise DataError(f"{where}: {TASK}: {problem.message}") from problem


async def _call_result(session: GymSession, call: ToolCall, program: ProgramRequest) -> str:
    """Return the answer to a call, in the words of Gym's own agent where the model made a mistake."""
    try:
        arguments = json.loads(call.raw_arguments)
    except ValueError as error:
        return json.dumps({"error": f"Invalid tool call arguments: {error!r}"})
    if not any(tool["function"]["name"] == call.name for tool in program.tools):
        return NO_TOOL
    return await session.call(call.name, arguments)


@asynccontextmanager
async def _connect_client(environment: str) -> AsyncIterator[HttpClient]:
    """Yield a client of the server at an address; one that is started where it is the name of a configuration."""
    if not is_address(environment):
        async with gym_server(environment, os.environ) as address, _connect_client(address) as client:
            yield client
        return
    client = HttpClient(environment, limit=CONNECTIONS, proxy=proxy_for(environment, os.environ))
    try:
        yield client
    finally:
        await client.close()


def is_address(environment: str) -> bool:
    return "://" in environment
