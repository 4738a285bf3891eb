# SPDX-License-Identifier: Apache-2.0
"""What all commands share whose work is a job, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import Experiment
from newskills.pipelines.options import PlacementOptions
from newskills.pipelines.placement.cluster import cluster_of
from newskills.pipelines.submission.groups import MAIN
from newskills.pipelines.submission.prepared import PreparedSubmission
from newskills.pipelines.submission.submit import run_prepared, submit_and_wait

O = TypeVar("O", bound=PlacementOptions)  # noqa: E741 - O as in options


def job_functions(
    prepare: Callable[[Parsed[O], ClusterConfig], PreparedSubmission | None],
) -> tuple[Callable[[Parsed[O]], int], Callable[[Parsed[O]], Experiment | None]]:
    """Return what runs a command and what works for Python; `prepare` returns None where nothing is left to do."""

    def run(parsed: Parsed[O]) -> int:
        """Submit the jobs, on this machine until they have ended; return the exit code. Raises NewskillsError."""
        ready = prepare(parsed, cluster_of(parsed.options))
        if ready is None:
            return 0
        return run_prepared(ready, show=(MAIN,))

    def result(parsed: Parsed[O]) -> Experiment | None:
        """Submit for Python, and return the experiment, None where nothing was left to do; on this machine, once it has
        ended well. Raises NewskillsError."""
        ready = prepare(parsed, cluster_of(parsed.options))
        if ready is None:
            return None
        return submit_and_wait(ready)

    return run, result


def planned_options(parsed: Parsed[O]) -> O:
    """Return the options; those of a dry run where the settings are to be explained."""
    if parsed.explain:
        return replace(parsed.options, dry_run=True)
    return parsed.options
