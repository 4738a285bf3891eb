# SPDX-License-Identifier: Apache-2.0
"""The options of `ns summarize_results`."""

from __future__ import annotations

from typing import Annotated, Literal

from newskills.pipelines.options import (
    DEFAULT_PROJECT,
    JOB,
    AcceptLost,
    ClusterOptions,
    DryRun,
    WandbGroup,
    WandbName,
    WandbProject,
    doc,
)


class SummarizeResultsOptions(ClusterOptions, frozen=True, kw_only=True):
    results_dir: Annotated[
        str, doc("folder of an evaluation, of one benchmark, or of several evaluations", {"positional": True})
    ]
    benchmarks: Annotated[
        str | None, doc("only these benchmarks, comma separated (default: all in the folder)")
    ] = None
    max_samples: Annotated[int, doc("only the first n problems; -1 = all")] = -1
    max_seq_len: Annotated[int | None, doc("generations with more tokens than this count as wrong")] = None
    errors_as: Annotated[
        Literal["unscored", "incorrect"],
        doc("what samples without a verdict are (failed requests, judges, graders): left out, or incorrect"),
    ] = "unscored"
    metric_type: Annotated[str | None, doc("another metrics class (name or module::Class)")] = None
    metrics_kwargs: Annotated[str, doc("JSON of arguments for the metrics class")] = ""
    save_metrics_path: Annotated[
        str | None, doc("file for the metrics, on this machine (default: RESULTS_DIR/metrics.json)")
    ] = None
    accept_lost: AcceptLost = 1.0
    verbose: Annotated[bool, doc("print the tables")] = True
    group: Annotated[
        str | None,
        doc(
            "files or folders of your own benchmark groups to score, comma separated; groups of newskills "
            "are known by name"
        ),
    ] = None
    debug: Annotated[bool, doc("also show which files were read, and which metric was used")] = False
    dry_run: DryRun = False
    remote_tar_dir: Annotated[
        str | None,
        doc("accepted for compatibility with NeMo-Skills; records are copied by rsync, without an archive", JOB),
    ] = None
    wandb_name: WandbName = None
    wandb_group: WandbGroup = None
    wandb_project: WandbProject = DEFAULT_PROJECT
