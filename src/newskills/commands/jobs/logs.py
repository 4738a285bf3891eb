# SPDX-License-Identifier: Apache-2.0
"""`ns logs NAME`: what submitted jobs have printed."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.jobs.logs import LogsOptions, read_logs, run

COMMAND = Command(
    name="logs",
    summary="Show the logs of submitted jobs, wherever they run; -f follows them until the jobs end.",
    options=LogsOptions,
    run=run,
    result=read_logs,
    examples=("ns logs my-eval", "ns logs -f my-eval", "ns logs my-eval --job=eval-rs0 --command=server"),
)
