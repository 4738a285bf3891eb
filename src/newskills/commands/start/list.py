# SPDX-License-Identifier: Apache-2.0
"""`ns list [KIND]`: names that can be typed elsewhere. Imports nothing but tables."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.start.list_names import ListOptions, list_names, run

COMMAND = Command(
    name="list",
    summary="List names that options accept: benchmarks (default), prompts, graders, metrics, models "
    "(protocols of endpoints), servers (engines to host), solvers, code tags and tools.",
    options=ListOptions,
    run=run,
    result=list_names,
    examples=(
        "ns list benchmarks --category math-natural",
        "ns list benchmarks --search 'simple qa'",
        "ns list --prepared",
        "ns list prompts",
    ),
)
