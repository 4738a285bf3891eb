# SPDX-License-Identifier: Apache-2.0
"""`ns cancel NAME`: stops submitted jobs."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.jobs.cancel import CancelOptions, cancel_jobs, run

COMMAND = Command(
    name="cancel",
    summary="Cancel submitted jobs, waiting and running. Running clients save what they have. Files stay, "
    "and the same command line, submitted again, resumes from there.",
    options=CancelOptions,
    run=run,
    result=cancel_jobs,
    examples=("ns cancel my-eval", "ns cancel my-eval --job=eval-rs0"),
)
