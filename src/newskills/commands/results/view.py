# SPDX-License-Identifier: Apache-2.0
"""`ns view DIR…`: results, samples, comparisons and trainings in a browser."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.view import ViewCommandOptions, run, start_or_export_viewer

COMMAND = Command(
    name="view",
    summary="Look at results in a browser: scores with intervals, samples with filters and search, why the grader "
    "decided so, comparisons of runs, trainings, jobs. Read-only, for this machine, behind a random token; it follows "
    "runs that are still writing. Needs newskills[view].",
    options=ViewCommandOptions,
    run=run,
    result=start_or_export_viewer,
    examples=(
        "ns view results",
        "ns view results/base results/tuned --port=7880",
        "ns view results --export page",
    ),
)
