# SPDX-License-Identifier: Apache-2.0
"""`ns environments [prune]`: what environments of agents take on this machine, and its removal."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.start.environments import EnvironmentsOptions

COMMAND = Command(
    name="environments",
    summary="Show what environments of agents have made on this machine (containers, networks, volumes, images of "
    "tasks) and what of it running evaluations use; prune removes the rest. Without --yes, prune only lists.",
    options=EnvironmentsOptions,
    run="newskills.pipelines.start.environments:run",
    result="newskills.pipelines.start.environments:list_or_remove_leftovers",
    examples=(
        "ns environments",
        "ns environments prune",
        "ns environments prune --yes",
        "ns environments prune --left_over --yes",
    ),
)
