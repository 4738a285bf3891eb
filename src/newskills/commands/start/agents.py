# SPDX-License-Identifier: Apache-2.0
"""`ns agents [install NAME…]`: programs that work as agents, and their installation."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.start.agents import AgentsOptions, list_or_install_agents, run

COMMAND = Command(
    name="agents",
    summary="Show the agents that are programs of others (++agent=NAME of ns eval and ns generate), and install them: "
    "each once, with its version pinned, into a folder that the environments of tasks see read-only. A file "
    "./agent.yaml describes another one.",
    options=AgentsOptions,
    run=run,
    result=list_or_install_agents,
    examples=(
        "ns agents",
        "ns agents install qwen-code codex",
        "ns agents install ./agent.yaml --folder=/shared/agents",
        "ns agents install all --mirror=/data/packages --offline",
    ),
)
