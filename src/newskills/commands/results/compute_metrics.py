# SPDX-License-Identifier: Apache-2.0
"""`ns compute_metrics`: metrics of single output files, each file one seed."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.compute_metrics_options import ComputeMetricsOptions

COMMAND = Command(
    name="compute_metrics",
    summary="Compute the metrics of graded output files, without a results folder. If the files are not "
    "graded: run ns grade first.",
    options=ComputeMetricsOptions,
    run="newskills.pipelines.results.compute_metrics:run",
    result="newskills.pipelines.results.compute_metrics:compute_metrics",
    examples=(
        "ns compute_metrics --prediction_jsonl_files ./test-results/gsm8k/output-greedy.jsonl --benchmark gsm8k",
    ),
)
