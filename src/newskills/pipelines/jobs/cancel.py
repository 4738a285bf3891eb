# SPDX-License-Identifier: Apache-2.0
"""What `ns cancel NAME` does: stops submitted jobs."""

from __future__ import annotations

import sys
from typing import Annotated

from msgspec import Struct

from newskills.config.command_line import Parsed
from newskills.launch.states import JobState
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.invocations import find_invocation
from newskills.pipelines.options import DryRun, SubmittedName, doc
from newskills.pipelines.submission.submitted import SCREENFUL, find_submitted


class CancelOptions(Struct, frozen=True, kw_only=True):
    name: SubmittedName
    job: Annotated[str | None, doc("only this job")] = None
    dry_run: DryRun = False


def run(parsed: Parsed[CancelOptions]) -> int:
    options = parsed.options
    if (invocation := find_invocation(options.name)) is not None:
        return invocation.cancel(dry_run=options.dry_run)
    chosen = find_submitted(options.name)
    jobs = [job for job in chosen.states(options.job) if not job.ended]
    if options.dry_run:
        show_dry_run([("cancels", job.job.name, f"{job.job.handle} ({job.state})") for job in jobs])
        return 0
    chosen.executor.cancel([job.job.handle for job in jobs])
    if not jobs:
        outcome = "no job is running or waiting"
    elif len(jobs) <= SCREENFUL:
        outcome = f"cancelled {', '.join(job.job.name for job in jobs)}"
    else:
        outcome = f"cancelled {len(jobs):,} jobs"
    sys.stdout.write(f"{chosen.experiment.id}: {outcome}\n")
    return 0


def cancel_jobs(parsed: Parsed[CancelOptions]) -> list[JobState] | None:
    """Cancel for Python, and return the jobs that were cancelled, as they were before; None for a dry run. Raises
    UnknownNameError, ConfigError, RemoteError."""
    options = parsed.options
    if options.dry_run:
        run(parsed)
        return None
    chosen = find_submitted(options.name)
    jobs = [job for job in chosen.states(options.job) if not job.ended]
    chosen.executor.cancel([job.job.handle for job in jobs])
    return jobs
