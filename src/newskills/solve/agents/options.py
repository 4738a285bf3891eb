# SPDX-License-Identifier: Apache-2.0
"""What agents have in common: which one, how many steps, where it acts, and what it did."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from newskills.base.environment import ExecutedCommand
from newskills.base.records import Reply, Row, TokenPrices, Usage
from newskills.environments.config import EnvironmentConfig
from newskills.solve.replies import sum_counts, sum_usages

REPOSITORY, TERMINAL = "agents/bash", "agents/terminal"
"""Usual prompts: they describe the work on a repository, and that on a whole machine."""


class AgentOptions(Struct, frozen=True, kw_only=True):
    """`settings` are the agent's own (`++agent_config.*`); prices are those of a million tokens, where known.

    file  of an agent that is a data file of the user's
    logs  folder beside which agents keep logs; None: nowhere
    """

    agent: str
    settings: Row = {}
    max_turns: int = 100
    environment: EnvironmentConfig = EnvironmentConfig()
    prices: TokenPrices = TokenPrices()
    file: Path | None = None
    logs: Path | None = None

    def cost(self, used: Usage) -> float | None:
        """Return the cost of what was used; None where a price or a count is not known."""
        if not self.prices.known or used.input_tokens is None or used.output_tokens is None:
            return None
        return self.prices.cost(used)


def time_for(row: Row, limit: float) -> float:
    """Return the seconds that an agent has for the task of `row`: the shorter of its own limit and the run's; 0
    for no limit."""
    own = row.get("agent_timeout")
    limits = [seconds for seconds in (own, limit) if isinstance(seconds, int | float) and seconds > 0]
    return float(min(limits, default=0.0))


def text_after(marker: str, command: str, output: str) -> str | None:
    """Return what follows the line `marker` of an output, where that line ends an agent's work; else None.

    It is the first line or, where the command itself names it, comes after what shells say of their own (a locale that
    is not there).
    """
    lines = output.lstrip().splitlines(keepends=True)
    for number, line in enumerate(lines if marker in command else lines[:1], start=1):
        if line.strip() == marker:
            return "".join(lines[number:])
    return None


class Trajectory(Struct, kw_only=True):
    """What one agent did.

    conversation     messages in OpenAI's shape, the prompt first
    steps            command, status, exit code, seconds, bytes of output and generated tokens of each
    counted_replies  replies whose tokens the steps have
    ended            why: submitted, steps, tokens, cost, time, context, no_command
    tools            those that the model was offered, where the agent chooses them itself
    submission       the patch that the agent itself gives; None: the changes in the environment are the patch
    log              folder beside the output that holds its logs
    """

    conversation: list[Row]
    steps: list[Row] = []
    replies: list[Reply] = []
    counted_replies: int = 0
    ended: str | None = None
    submission: str | None = None
    native_tools: bool = True
    tools: list[Row] | None = None
    log: str | None = None

    @property
    def usage(self) -> Usage:
        """Tokens of all replies."""
        return sum_usages([reply.usage for reply in self.replies])

    def add_step(self, command: str, result: ExecutedCommand) -> None:
        """Add a step; it has the tokens of the replies since the step before, where the agent's loop is ours."""
        step: Row = {
            "command": command,
            "status": result.status,
            "exit_code": result.exit_code,
            "seconds": round(result.seconds, 3),
            "output_bytes": len(result.output) + result.omitted,
        }
        tokens = sum_counts([reply.usage.output_tokens for reply in self.replies[self.counted_replies :]])
        self.counted_replies = len(self.replies)
        if tokens:
            step["num_generated_tokens"] = tokens
        self.steps.append(step)
