# SPDX-License-Identifier: Apache-2.0
"""`ns resume ID`: resubmits the jobs of an invocation that failed or were cancelled."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills_evaluator.running.resume import ResumeOptions, resume_invocation, run

COMMAND = Command(
    name="resume",
    summary="Resubmit the jobs of an invocation that failed or were cancelled. They resume where they "
    "stopped: finished replies are kept.",
    options=ResumeOptions,
    run=run,
    result=resume_invocation,
    examples=("ns resume 3f9c0a", "ns resume 3f9c0a.1 -f"),
)
