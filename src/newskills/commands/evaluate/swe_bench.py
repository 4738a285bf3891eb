# SPDX-License-Identifier: Apache-2.0
"""`ns swe_bench export|grade|report`: patches for the harness of SWE-bench, and its verdicts."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.evaluation.swe_bench_options import SweBenchOptions

COMMAND = Command(
    name="swe_bench",
    summary="Grade patches as SWE-bench does: run the tests in containers and read their logs by the package "
    "swebench, or export predictions for its harness and read its verdicts. An instance that could not be judged "
    "is unscored, never wrong.",
    options=SweBenchOptions,
    result="newskills.pipelines.evaluation.swe_bench:export_or_grade_patches",
    examples=(
        "ns swe_bench export output.jsonl --output_file=predictions.jsonl --model_name=my-model",
        "ns swe_bench report output.jsonl --reports=logs/run_evaluation/run --output_file=graded.jsonl",
        "ns swe_bench grade output.jsonl --output_file=graded.jsonl --workers=8",
        "ns swe_bench grade output.jsonl --output_file=graded.jsonl --engine=harness",
    ),
)
