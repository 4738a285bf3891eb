# SPDX-License-Identifier: Apache-2.0
"""An agent with one tool, the shell: asks, runs the command, shows its output, until the work is submitted.

In the manner of mini-SWE-agent (https://mini-swe-agent.com, Yang et al. 2024, arXiv:2405.15793): the history is linear,
every command runs in a shell of its own, and nothing else is offered.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.environment import AgentEnvironment, ExecutedCommand
from newskills.base.errors import BadRequestError, ContextLimitError
from newskills.base.protocols import Model
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Message, Reply, Request, Row
from newskills.solve.agents.options import AgentOptions, Trajectory, text_after, time_for
from newskills.solve.calls.tool_calls import ToolCall, read_calls
from newskills.solve.chat import ask

MARKER = "SUBMIT_CHANGES"
"""First line of the output of the command that ends the work."""
TOOL: Row = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs a command by bash and returns its exit code and its output.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "the command"}},
            "required": ["command"],
        },
    },
}
_FENCE = re.compile(r"^```(?:bash|sh|shell)[ \t]*\r?\n(.*?)^```", re.MULTILINE | re.DOTALL)
ONE_CALL = (
    "There was no command in your reply. Call the tool `bash` with one command, or write one command into a code "
    f"block that begins with ```bash. To end the work, run: echo {MARKER}"
)
ONE_BLOCK = (
    "Your reply must hold exactly one command, in one code block that begins with ```bash and ends with ```; there "
    f"were %d. To end the work, run: echo {MARKER}"
)
NOT_RUN = "Not run: one command at a time."


class BashAgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the agent `bash` (`++agent_config.*`)."""

    prompt: Annotated[
        str, Meta(description="prompt that describes the work; default: agents/bash, or agents/terminal")
    ] = ""
    native_tools: Annotated[
        bool | None,
        Meta(description="true: tool calls; false: commands in code blocks; default: whatever the endpoint takes"),
    ] = None
    command_timeout: Annotated[float, Meta(gt=0, description="time limit of a command in seconds")] = 300.0
    max_output: Annotated[
        int, Meta(ge=200, description="largest number of bytes that the model sees of an output")
    ] = 10_000
    token_limit: Annotated[
        int, Meta(ge=0, description="tokens that may be generated for one task; 0 = no limit")
    ] = 0
    cost_limit: Annotated[
        float, Meta(ge=0, description="cost of one task, in the unit of the server's prices; 0 = no limit")
    ] = 0.0
    time_limit: Annotated[float, Meta(ge=0, description="seconds for one task; 0 = no limit")] = 7200.0
    max_empty: Annotated[int, Meta(ge=1, description="replies without a command, one after the other")] = 3


class BashAgent:
    """One for all samples. It finds out once whether the endpoint takes tools."""

    Config = BashAgentConfig
    version = "2"

    def __init__(self, options: AgentOptions, config: BashAgentConfig) -> None:
        self._options, self.config = options, config
        self._native = config.native_tools
        self._finding_out = asyncio.Lock()

    def prompt(self, usual: str) -> str:
        return self.config.prompt or usual

    @property
    def mounts(self) -> Mapping[str, str]:
        return {}

    def prepared(self, request: Request) -> Request:
        """Return the first request of a sample."""
        return msgspec.structs.replace(request, tools=None if self._native is False else [TOOL])

    async def work(self, request: Request, model: Model, environment: AgentEnvironment, row: Row) -> Trajectory:
        """Work on a task until it is submitted or a limit is reached. Raises what the model and the environment
        raise."""
        trajectory = Trajectory(
            conversation=[msgspec.to_builtins(message) for message in request.messages or []],
            steps=[],
            replies=[],
        )
        began, allowed = time.monotonic(), time_for(row, self.config.time_limit)
        current = msgspec.structs.replace(request, solver={})
        empty = 0
        while trajectory.ended is None:
            try:
                reply, current = await self._ask(model, current)
            except ContextLimitError:
                if not trajectory.replies:
                    raise
                trajectory.ended = "context"
                break
            trajectory.replies.append(reply)
            turn, commands = _read_commands(reply, len(trajectory.steps), native=current.tools is not None)
            added = [
                turn,
                *await self._answers(trajectory, environment, reply, commands, current.tools is not None),
            ]
            trajectory.conversation += [msgspec.to_builtins(message) for message in added]
            current = msgspec.structs.replace(current, messages=[*(current.messages or []), *added])
            empty = 0 if commands else empty + 1
            trajectory.ended = trajectory.ended or self._limit(trajectory, empty)
            if allowed and time.monotonic() - began >= allowed:
                trajectory.ended = trajectory.ended or "time"
        trajectory.native_tools = current.tools is not None
        return trajectory

    async def _ask(self, model: Model, request: Request) -> tuple[Reply, Request]:
        """Return the reply, and the request as the endpoint took it: without tools where it refuses them."""
        if request.tools is not None and self._native is None:
            async with self._finding_out:
                if self._takes_tools() is None:
                    return await self._find_out(model, request)
        if self._takes_tools() is False:
            request = msgspec.structs.replace(request, tools=None)
        return await ask(model, request), request

    def _takes_tools(self) -> bool | None:
        """Return whether the model takes tools; None while nobody knows, and another sample may find out
        meanwhile."""
        return self._native

    async def _find_out(self, model: Model, request: Request) -> tuple[Reply, Request]:
        try:
            reply = await ask(model, request)
        except ContextLimitError:
            raise
        except BadRequestError:
            request = msgspec.structs.replace(request, tools=None)
            reply = await ask(model, request)
        self._native = request.tools is not None
        return reply, request

    async def _answers(
        self,
        trajectory: Trajectory,
        environment: AgentEnvironment,
        reply: Reply,
        commands: Sequence[tuple[ToolCall | None, str]],
        native: bool,
    ) -> list[Message]:
        """Return what the model is told: the first command is run, further ones are not."""
        if not commands:
            return [Message(role="user", content=ONE_CALL if native else ONE_BLOCK % _block_count(reply))]
        answers = []
        for number, (call, command) in enumerate(commands):
            if call is not None and (call.problem or not command):
                text = f"Error: {call.problem or 'the argument `command` is missing'}"
            elif number > 0:
                text = NOT_RUN
            else:
                text = await self._run(trajectory, environment, command)
            if call is None:
                answers.append(Message(role="user", content=text))
            else:
                answers.append(Message(role="tool", content=text, name=call.shown_name, tool_call_id=call.id))
        return answers

    async def _run(self, trajectory: Trajectory, environment: AgentEnvironment, command: str) -> str:
        config = self.config
        result = await environment.execute(command, timeout=config.command_timeout, max_output=config.max_output)
        trajectory.add_step(command, result)
        if _is_submission(command, result):
            trajectory.ended = "submitted"
        return command_observation(result, config.command_timeout)

    def _limit(self, trajectory: Trajectory, empty: int) -> str | None:
        """Return which limit is reached, if any."""
        config, used = self.config, trajectory.usage
        written, cost = used.output_tokens, self._options.cost(used)
        if empty >= config.max_empty:
            return "no_command"
        if len(trajectory.replies) >= self._options.max_turns:
            return "steps"
        if config.token_limit and written is not None and written >= config.token_limit:
            return "tokens"
        if config.cost_limit and cost is not None and cost >= config.cost_limit:
            return "cost"
        return None


def _is_submission(command: str, result: ExecutedCommand) -> bool:
    """Return whether the command printed the marker, with or without more on that line."""
    output = result.output.decode("utf-8", "replace").lstrip()
    printed = output.startswith(MARKER) or text_after(MARKER, command, output) is not None
    return result.exit_code == 0 and printed


def command_observation(result: ExecutedCommand, timeout: float) -> str:
    """Return what the model sees of a command: how it ended, then its output; what is left out of that is named."""
    ending = {
        "timeout": f"The command was stopped after {timeout:g} seconds, with everything that ran.",
        "disk_full": "The command was stopped: it filled the disk.",
    }.get(result.status, f"Exit code: {result.exit_code}")
    if not result.omitted:
        text = result.output.decode("utf-8", "replace")
    else:
        half = len(result.output) // 2
        head = result.output[:half].decode("utf-8", "replace")
        tail = result.output[half:].decode("utf-8", "replace")
        text = f"{head}\n[{result.omitted:,} bytes are left out here; show less at once]\n{tail}"
    if text.strip():
        return f"{ending}\n{text}"
    return f"{ending}\n(no output)"


def _read_commands(
    reply: Reply, before: int, *, native: bool
) -> tuple[Message, list[tuple[ToolCall | None, str]]]:
    """Return the reply as a message to send back, and the commands in it."""
    calls = []
    if native and reply.finish_reason != "length":
        calls = read_calls(reply, before)
    raw = (reply.raw_message or {}).get("content")
    turn = Message(
        role="assistant",
        content=raw if isinstance(raw, list) else reply.text,  # blocks of a provider's own go back as they came
        tool_calls=[call.row() for call in calls] or None,
        reasoning_content=reply.reasoning,
    )
    if calls:
        return turn, [(call, _command_line(call)) for call in calls]
    blocks = _FENCE.findall(without_thinking(reply.text))
    if len(blocks) == 1:
        return turn, [(None, blocks[0].replace("\r\n", "\n").strip("\n"))]
    return turn, []


def _command_line(call: ToolCall) -> str:
    if call.name != "bash":
        call.problem = call.problem or f"there is no tool '{call.name[:50]}'; the only tool is bash"
    command = call.arguments.get("command")
    if isinstance(command, str):
        return command
    return ""


def _block_count(reply: Reply) -> int:
    return len(_FENCE.findall(without_thinking(reply.text)))
