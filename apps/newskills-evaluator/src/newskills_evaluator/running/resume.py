# SPDX-License-Identifier: Apache-2.0
"""What `ns resume ID` does: resubmits the jobs of an invocation that failed or were cancelled."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.invocations import Invocation
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import DryRun, doc
from newskills_evaluator.running.invocations import follow_jobs, forward_to_launcher, invocation_jobs, print_jobs

if TYPE_CHECKING:
    from newskills_evaluator.invocations import InvocationJob


class ResumeOptions(Struct, frozen=True, kw_only=True):
    id: Annotated[
        str,
        doc(
            "invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX for one job",
            {"positional": True},
        ),
    ]
    follow: Annotated[
        bool, doc("follow the logs until the jobs have ended, and exit with their exit code", {"short": "-f"})
    ] = False
    dry_run: DryRun = False


def run(parsed: Parsed[ResumeOptions]) -> int:
    return _resume_jobs(parsed)[0]


def resume_invocation(parsed: Parsed[ResumeOptions]) -> Invocation | None:
    """Return the jobs as they are once they were submitted again, with `follow` once they have ended; None for a dry
    run. Raises NewskillsError where one of them failed."""
    from newskills_evaluator.oversight import job_statuses
    from newskills_evaluator.running.invocation import ended_invocation

    code, again = _resume_jobs(parsed)
    if code:
        raise NewskillsError(f"The jobs of '{parsed.options.id}' ended with exit code {code}.")
    if not again:
        return None
    return ended_invocation(job_statuses(again, os.environ), code)


def _resume_jobs(parsed: Parsed[ResumeOptions]) -> tuple[int, list[InvocationJob]]:
    """Return the exit code, and the jobs that were submitted again; none for a dry run."""
    from newskills_evaluator.oversight import job_statuses, resubmit_jobs

    options = parsed.options
    entries = invocation_jobs(options.id)
    if options.dry_run:
        show_dry_run(
            [
                ("submits", status.entry.job_id, f"{status.entry.task} ({status.state})")
                for status in job_statuses(entries, os.environ)
                if status.state != "success"
            ]
        )
        return 0, []
    if (code := forward_to_launcher(entries, "resume")) is not None:
        return code, entries
    experiment, again = resubmit_jobs(entries, os.environ, print_note)
    names = ", ".join(entry.job_id for entry in again)
    sys.stdout.write(f"✓ Submitted again: {names}\n  ns status {again[0].invocation_id}\n")
    sys.stdout.flush()
    if not options.follow:
        return 0, again
    code = follow_jobs(experiment)
    print_jobs(job_statuses(again, os.environ))
    return code, again
