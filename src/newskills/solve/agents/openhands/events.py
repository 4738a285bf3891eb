# SPDX-License-Identifier: Apache-2.0
"""Events of OpenHands, as `inside` has written them, become our record."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.environment import ExecutedCommand
from newskills.base.records import Row
from newskills.solve.agents.openhands.inside import EVENTS
from newskills.solve.agents.options import Trajectory
from newskills.solve.agents.programs.messages import kept_message
from newskills.solve.agents.programs.program import INTERRUPTED

ENDINGS = {"finished": "submitted", "stuck": "no_command"}
"""Its words for why it ended, where they are not ours; it is stuck where it repeats itself."""
TERMINAL = "terminal"


class _Event(Struct, frozen=True, kw_only=True):
    event: str
    time: datetime | None = None
    message: Row | None = None
    llm_response_id: str | None = None
    tool_call_id: str | None = None
    exit_code: int | None = None
    timeout: bool = False
    status: str | None = None


class _Call(Struct, frozen=True):
    began: datetime | None
    command: str


def read_events(folder: Path) -> Trajectory | None:
    """Read the trajectory without replies, which the endpoint has seen; None where nothing was begun. What is torn
    is left out."""
    trajectory = Trajectory(conversation=[], ended=INTERRUPTED)
    calls: dict[str, _Call] = {}
    reply = None
    for event in _read_events(folder):
        if event.status is not None:
            trajectory.ended = ENDINGS.get(event.status, event.status)
        if event.message is None:
            continue
        message = kept_message(event.message)
        if event.llm_response_id is not None and event.llm_response_id == reply:
            _append_calls(trajectory.conversation[-1], message)
        else:
            trajectory.conversation.append(message)
        reply = event.llm_response_id
        for call in message.get("tool_calls", []) if event.llm_response_id else []:
            calls[call["id"]] = _Call(event.time, _command_line(call["function"]))
        if message["role"] == "tool" and (done := calls.get(event.tool_call_id or "")) is not None:
            _add_step(trajectory, done, event, str(message["content"]))
    if trajectory.conversation:
        return trajectory
    return None


def _read_events(folder: Path) -> list[_Event]:
    file = folder / EVENTS
    events: list[_Event] = []
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        try:
            events.append(msgspec.json.decode(line, type=_Event))
        except (msgspec.DecodeError, msgspec.ValidationError):
            break
    return events


def _append_calls(message: Row, more: Row) -> None:
    """Append the text and the calls of `more` to `message`: a reply with several calls is an event for each of them."""
    message["content"] += more["content"]
    message["tool_calls"] = [*message.get("tool_calls", []), *more.get("tool_calls", [])]


def _command_line(function: Row) -> str:
    """Return a line for the shell as it is; another tool's name with its arguments."""
    name, arguments = str(function["name"]), str(function["arguments"])
    if name != TERMINAL:
        return f"{name} {arguments}"
    try:
        return msgspec.json.decode(arguments, type=_Arguments).command
    except (msgspec.DecodeError, msgspec.ValidationError):
        return arguments


class _Arguments(Struct, frozen=True):
    command: str = ""


def _add_step(trajectory: Trajectory, call: _Call, event: _Event, output: str) -> None:
    seconds = (event.time - call.began).total_seconds() if event.time and call.began else 0.0
    result = ExecutedCommand(
        status="timeout" if event.timeout else "completed",
        output=output.encode("utf-8", "replace"),
        exit_code=event.exit_code,
        seconds=seconds,
    )
    trajectory.add_step(call.command, result)
