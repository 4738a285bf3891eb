# SPDX-License-Identifier: Apache-2.0
"""Trajectories of SWE-agent as ours. Format: <https://swe-agent.com/latest/usage/trajectories/>."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.environment import ExecutedCommand
from newskills.base.errors import EnvironmentFailedError
from newskills.base.records import Row
from newskills.solve.agents.options import Trajectory
from newskills.solve.agents.programs.messages import kept_message
from newskills.solve.agents.programs.program import INTERRUPTED

SUFFIX = ".traj"
ENDINGS = {
    "exit_cost": "steps",
    "exit_context": "context",
    "exit_format": "no_command",
    "exit_command_timeout": "time",
    "exit_total_execution_time": "time",
}
"""Its reasons to end by itself; our limit of requests is the one that it calls cost."""
FAILURES = frozenset({"exit_error", "exit_environment_error", "exit_api"})
"""Its reasons that are faults of the program, of the container or of the endpoint."""
_AFTER_ALL = re.compile(r"submitted \((\w+)\)\Z")


class _Step(Struct, frozen=True):
    action: str = ""
    observation: str = ""
    execution_time: float = 0.0


class _Info(Struct, frozen=True):
    exit_status: str | None = None
    submission: str | None = None


class _File(Struct, frozen=True):
    trajectory: list[_Step] = []
    history: list[Row] = []
    info: _Info = _Info()


def read_trajectory(file: Path) -> Trajectory:
    """Read the trajectory without replies, which the endpoint has seen.

    Raises EnvironmentFailedError for what is no trajectory, and where not the model but an error ended it.
    """
    try:
        read = msgspec.json.decode(file.read_bytes(), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EnvironmentFailedError(f"SWE-agent's trajectory {file.name} cannot be read: {error}.") from error
    if (reason := _exit_reason(read.info.exit_status)) in FAILURES:
        raise EnvironmentFailedError(f"SWE-agent was ended by an error of its own ({reason}); its log says which.")
    trajectory = Trajectory(
        conversation=[_read_message(message) for message in read.history], submission=read.info.submission or ""
    )
    for step in read.trajectory:
        if step.action.strip():
            result = ExecutedCommand(
                status="completed", output=step.observation.encode("utf-8", "replace"), seconds=step.execution_time
            )
            trajectory.add_step(step.action, result)
    trajectory.ended = INTERRUPTED if reason is None else ENDINGS.get(reason, reason)
    return trajectory


def _exit_reason(status: str | None) -> str | None:
    """Return why it ended: what it hands in after a limit was reached is no submission of the model's.

    >>> _exit_reason("submitted"), _exit_reason("submitted (exit_cost)"), _exit_reason("exit_error")
    ('submitted', 'exit_cost', 'exit_error')
    """
    match = _AFTER_ALL.match(status or "")
    if match:
        return match[1]
    return status


def _read_message(raw: Row) -> Row:
    answered = raw.get("tool_call_ids")
    if raw.get("role") == "tool" and isinstance(answered, list) and answered:
        return kept_message({**raw, "tool_call_id": answered[0]})
    return kept_message(raw)
