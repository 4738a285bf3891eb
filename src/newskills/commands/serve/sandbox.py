# SPDX-License-Identifier: Apache-2.0
"""`ns sandbox serve|doctor`: code that a model wrote, run where it can do no harm."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.serving.sandbox import Keys, SandboxOptions, run, serve_or_examine_sandbox

COMMAND = Command(
    name="sandbox",
    summary="Run model-generated code in isolation: `serve` answers POST /execute until Ctrl-C, `doctor` shows what "
    "isolates code on this machine.",
    options=SandboxOptions,
    run=run,
    result=serve_or_examine_sandbox,
    config=Keys,
    examples=(
        "ns sandbox doctor",
        "ns sandbox serve --port=6000",
        "ns sandbox serve --memory_mb=4096 --session_timeout=3600 --data_dir=/data/sql",
    ),
)
