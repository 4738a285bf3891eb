# SPDX-License-Identifier: Apache-2.0
"""The options of `ns export`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from newskills.pipelines.options import DryRun, doc

LOCAL = "local"
"""The destination of an export where none is named."""

TableFormat = Literal["parquet", "csv", "duckdb"]


class ExportOptions(Struct, frozen=True, kw_only=True):
    id: Annotated[
        list[str],
        doc(
            "invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX for one job; with "
            "--format inspect and atif, and with --to, also results folders",
            {"positional": True},
        ),
    ]
    to: Annotated[
        TableFormat | None,
        doc("tables of runs, scores, samples and messages as files: parquet, csv, or one database of DuckDB"),
    ] = None
    dest: Annotated[list[str], doc("destination: local (the default), wandb, mlflow, or one of your own")] = []
    format: Annotated[
        str | None,
        doc(
            "json or csv (for local): one file with all scores; inspect: one log per benchmark; atif: one "
            "trajectory per sample"
        ),
    ] = None
    output_dir: Annotated[str | None, doc("for local, inspect, atif and --to: folder to write to")] = None
    output_filename: Annotated[str | None, doc("for local: name of the file")] = None
    copy_logs: Annotated[bool, doc("for local: also copy the logs")] = False
    log_metrics: Annotated[list[str], doc("only scores whose name contains one of these texts")] = []
    dry_run: DryRun = False
