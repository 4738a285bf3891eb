# SPDX-License-Identifier: Apache-2.0
"""The options of `ns compute_metrics`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from newskills.pipelines.options import AcceptLost, DryRun, doc


class ComputeMetricsOptions(Struct, frozen=True, kw_only=True):
    prediction_jsonl_files: Annotated[
        list[str], doc("graded output files of one benchmark; several files = several seeds")
    ]
    benchmark: Annotated[str, doc("name of the benchmark (decides which metrics are computed)")]
    max_samples: Annotated[int, doc("only the first n problems; -1 = all")] = -1
    metric_type: Annotated[str | None, doc("another metrics class (name or module::Class)")] = None
    metrics_kwargs: Annotated[str, doc("JSON of arguments for the metrics class")] = ""
    save_metrics_path: Annotated[str | None, doc("folder to write metrics.json to (default: print only)")] = None
    accept_lost: AcceptLost = 1.0
    dry_run: DryRun = False
