# SPDX-License-Identifier: Apache-2.0
"""`ns status [NAME]`: how submitted jobs are doing."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.jobs.status import StatusOptions, job_states, run

COMMAND = Command(
    name="status",
    summary="Show the state of submitted jobs: state, exit code, seconds, and the folder of their logs.",
    options=StatusOptions,
    run=run,
    result=job_states,
    examples=(
        "ns status",
        "ns status my-eval",
        "ns status my-eval --all",
        "ns status my-eval --job=judge",
        "ns status 3f9c0a",
    ),
)
