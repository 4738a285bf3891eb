# SPDX-License-Identifier: Apache-2.0
"""`ns summarize_results DIR`: tables and metrics.json of a results folder, wherever its records come from."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.summarize_results_options import SummarizeResultsOptions

COMMAND = Command(
    name="summarize_results",
    summary="Print the tables of a results folder and write metrics.json: pass@k, averages, majority@k, "
    "intervals. Reads results of earlier runs and of NeMo-Skills; generates nothing. If --cluster is "
    "reached by ssh, the records are copied here, and metrics.json is written on the cluster.",
    options=SummarizeResultsOptions,
    run="newskills.pipelines.results.summarize_results:run",
    result="newskills.pipelines.results.summarize_results:summarize_results",
    examples=(
        "ns summarize_results results",
        "ns summarize_results results --benchmarks gsm8k --max_samples 100",
        "ns summarize_results /lustre/me/results --cluster=slurm",
    ),
)
