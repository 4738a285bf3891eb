# SPDX-License-Identifier: Apache-2.0
"""The options of `ns summarize_robustness`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import JOB, AcceptLost, ClusterOptions, DryRun, doc


class SummarizeRobustnessOptions(ClusterOptions, frozen=True, kw_only=True):
    results_dir: Annotated[str, doc("results folder of ns robust_eval", {"positional": True})]
    save_metrics_path: Annotated[
        str | None,
        doc("file for the numbers, on this machine (default: RESULTS_DIR/summarize_robustness/metrics.json)"),
    ] = None
    data_dir: Annotated[str | None, doc("accepted for compatibility with NeMo-Skills; no data is read", JOB)] = (
        None
    )
    remote_tar_dir: Annotated[
        str | None,
        doc("accepted for compatibility with NeMo-Skills; records are copied by rsync, without an archive", JOB),
    ] = None
    accept_lost: AcceptLost = 1.0
    verbose: Annotated[bool, doc("print the tables")] = True
    debug: Annotated[bool, doc("also show which files were read")] = False
    dry_run: DryRun = False
