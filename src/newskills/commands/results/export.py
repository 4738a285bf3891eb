# SPDX-License-Identifier: Apache-2.0
"""`ns export ID`: results of an invocation to W&B, MLflow, or a file; logs of Inspect; tables as files."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.export import export_results, run
from newskills.pipelines.results.export_options import ExportOptions

COMMAND = Command(
    name="export",
    summary="Export results of ns evaluate to Weights & Biases or MLflow, or to one JSON or CSV file. The "
    "`export` section of the invocation's own config applies unless an option overrides it. --format "
    "inspect writes logs that Inspect and its viewer read; --to parquet, csv or duckdb writes tables of runs, scores, "
    "samples and messages. Both also take any results folder.",
    options=ExportOptions,
    run=run,
    result=export_results,
    any_keys=True,
    examples=(
        "ns export 3f9c0a --format json --output_dir exported",
        "ns export results --format inspect --output_dir logs",
        "ns export results --to parquet --output_dir tables",
        "ns export 3f9c0a --dest wandb export.wandb.project=my-project",
    ),
)
