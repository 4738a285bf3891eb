# SPDX-License-Identifier: Apache-2.0
"""`ns info [ID]`: what an invocation is, where its files lie, what it has scored."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills_evaluator.running.info import InfoOptions, find_invocations, run

COMMAND = Command(
    name="info",
    summary="Show an invocation of ns evaluate: its jobs, the folders of their files, and their scores.",
    options=InfoOptions,
    run=run,
    result=find_invocations,
    examples=("ns info", "ns info 3f9c0a", "ns info 3f9c0a --config"),
)
