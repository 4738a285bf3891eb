# SPDX-License-Identifier: Apache-2.0
"""`ns compare A B …`: is one run better than another, and by how much, sample by sample."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.compare import CompareCommandOptions, compare_runs, run

COMMAND = Command(
    name="compare",
    summary="Compare runs sample by sample: difference with a 95 % interval and a p-value for each benchmark, what "
    "changed from right to wrong and from wrong to right, and which differences are too small to be detected. "
    "Runs that "
    "differ in data, prompt or grader are refused unless --allow names it. Exit codes: 0; 2 where nothing can be "
    "compared; 3 where a condition of --fail_if holds.",
    options=CompareCommandOptions,
    run=run,
    result=compare_runs,
    examples=(
        "ns compare results/base results/tuned",
        "ns compare results/base results/tuned --fail_if worse --fail_if 'gsm8k < -1.0'",
        "ns compare results/v1 results/v2 --allow prompt --json",
    ),
)
