# SPDX-License-Identifier: Apache-2.0
"""`ns regrade DIR`: new verdicts for finished records, without new generation."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.regrade import RegradeCommandOptions, regrade_results, run

COMMAND = Command(
    name="regrade",
    summary="Grade finished records again, without any generation: which verdicts change, and how much the score "
    "depends on the grader (strict, usual and lenient extraction). The records themselves are never changed; "
    "--output_dir "
    "keeps the new ones. ++key=value sets the grader's options, ++sandbox.key=value those of the sandbox.",
    options=RegradeCommandOptions,
    run=run,
    result=regrade_results,
    any_keys=True,
    examples=(
        "ns regrade results",
        "ns regrade results --benchmarks gsm8k --strict",
        "ns regrade results --grader math ++relative_tolerance=0.01 --output_dir regraded",
    ),
)
