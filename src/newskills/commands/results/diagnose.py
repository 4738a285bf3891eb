# SPDX-License-Identifier: Apache-2.0
"""`ns diagnose DIR [DIR2]`: why a run fails, in groups of failures."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.scan_options import DiagnoseOptions

COMMAND = Command(
    name="diagnose",
    summary="Report why a run fails: truncation, extraction, tools, environment, knowledge, arithmetic, instructions, "
    "suspected faults of the grader or of expected answers, each with its count, its points of the loss, samples, and "
    "what would change it. With a second folder, the difference. Rules alone, and claims of --model whose ids and "
    "quotes hold. Writes HTML, Markdown and JSON.",
    options=DiagnoseOptions,
    run="newskills.pipelines.results.diagnose:run",
    result="newskills.pipelines.results.diagnose:diagnose_failures",
    any_keys=True,
    examples=(
        "ns diagnose results",
        "ns diagnose results/base results/tuned --output why",
        "ns diagnose results --model=gpt-4.1-mini --server_type=openai",
    ),
)
