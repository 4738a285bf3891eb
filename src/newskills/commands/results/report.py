# SPDX-License-Identifier: Apache-2.0
"""`ns report DIR`: results as one HTML file that stands alone, and as Markdown."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.report import ReportCommandOptions, run, write_results_report

COMMAND = Command(
    name="report",
    summary="Write a report of results, as one HTML file that needs nothing else and as Markdown: comparisons, "
    "scores with intervals, grader sensitivity, trainings, settings, prompts, versions, hashes, licences of "
    "the data, cost, and the command that reproduces it.",
    options=ReportCommandOptions,
    run=run,
    result=write_results_report,
    examples=(
        "ns report results",
        "ns report results/base results/tuned --output comparison",
        "ns report results --contamination_file contamination/output.jsonl",
    ),
)
