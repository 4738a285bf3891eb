# SPDX-License-Identifier: Apache-2.0
"""What a program did, as the run's gateway saw it: the same record for every program, whatever its own log is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from newskills.base.environment import ExecutedCommand
from newskills.base.records import Row
from newskills.gateway.form import argument_text, arguments_of, name_of
from newskills.gateway.recording import GatewayLog, LogRecorder, RecordedExchange
from newskills.gateway.segments import Conversation, read_conversations
from newskills.gateway.server import GatewayExchange
from newskills.gateway.tasks import GatewayTask
from newskills.solve.agents.options import Trajectory
from newskills.solve.agents.programs.messages import kept_message

COMMANDS = ("command", "cmd")
"""Arguments in which tools of programs take a command line."""


class TaskRecorders:
    """A log for each task at work, in a folder of its own. Implements `Recorder`."""

    def __init__(self) -> None:
        self._recorders: dict[int, LogRecorder] = {}

    def begin(self, task: GatewayTask, folder: Path) -> LogRecorder:
        """Begin the log of a task in `folder`. Raises StorageError."""
        recorder = self._recorders[id(task)] = LogRecorder(folder)
        return recorder

    def end(self, task: GatewayTask) -> None:
        self._recorders.pop(id(task)).close()

    def record(self, exchange: GatewayExchange) -> None:
        """Record an exchange of a task; what comes after its end is left out. Raises StorageError."""
        if (recorder := self._recorders.get(id(exchange.task))) is not None:
            recorder.record(exchange)


def recorded_trajectory(log: GatewayLog) -> Trajectory:
    """Return the longest conversation of a task, one with tools before one without, with its calls as steps."""
    chosen = max(read_conversations(log), key=_conversation_rank)
    last = chosen.exchanges[-1]
    messages = [kept_message(message) for message in log.history(last.reply or last.prompt)]
    trajectory = Trajectory(conversation=messages, tools=log.tools.get(last.tools_id))
    results = {str(message.get("tool_call_id")): str(message["content"]) for message in messages}
    for place, exchange in enumerate(chosen.exchanges):
        if not exchange.reply:
            continue
        message = log.messages[exchange.reply][1]
        seconds = _seconds_until(exchange, chosen.exchanges[place + 1 :])
        for call in message.get("tool_calls") or ():
            output = results.get(str(call.get("id")), "").encode("utf-8", "replace")
            done = ExecutedCommand(status="completed", output=output, seconds=seconds)
            trajectory.add_step(_command_line(call), done)
    return trajectory


def _conversation_rank(conversation: Conversation) -> tuple[bool, int]:
    with_tools = any(exchange.tools_id for exchange in conversation.exchanges)
    return with_tools, len(conversation.exchanges)


def _seconds_until(exchange: RecordedExchange, later: list[RecordedExchange]) -> float:
    """Return the seconds from a reply to the request after it, in which its calls were made."""
    if later:
        return max(0.0, later[0].began - exchange.began - exchange.seconds)
    return 0.0


def _command_line(call: Row) -> str:
    """Return the command line of a call, or the tool with its arguments."""
    arguments = arguments_of(call)
    for name in COMMANDS:
        value: Any = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return " ".join(map(str, value))
    return f"{name_of(call)} {argument_text(call)}"
