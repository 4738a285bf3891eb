# SPDX-License-Identifier: Apache-2.0
"""`ns why A B`: what differs between two runs, and how many points each difference explains."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.why import WhyOptions, explain_difference, run

COMMAND = Command(
    name="why",
    summary="Explain why two scores differ: data, prompt (as a diff), grader, sampling, model and engine of both runs, "
    "and how many points each explains, if the records can tell: the same problems, the same grader, no truncated "
    "answers. Nothing is generated and nothing is written.",
    options=WhyOptions,
    run=run,
    result=explain_difference,
    examples=("ns why results/last-week results/today", "ns why results/a results/b --benchmarks gsm8k --json"),
)
