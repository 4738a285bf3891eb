# SPDX-License-Identifier: Apache-2.0
"""What `newskills.profile_evaluate` returns: what was submitted, how its tasks ended, and their scores."""

from __future__ import annotations

from collections.abc import Sequence

from newskills.pipelines.invocations import Invocation, InvocationTask
from newskills_evaluator.invocations import InvocationJob
from newskills_evaluator.masking import mask_secrets
from newskills_evaluator.oversight import JobStatus


def submitted_invocation(entries: Sequence[InvocationJob]) -> Invocation:
    """Return an invocation that goes on after the call."""
    return ended_invocation([JobStatus(entry, "pending") for entry in entries], 0)


def ended_invocation(jobs: Sequence[JobStatus], exit_code: int) -> Invocation:
    """Return an invocation whose jobs have ended so."""
    tasks = [
        InvocationTask(
            job_id=job.entry.job_id,
            name=job.entry.task,
            state=job.state,
            exit_code=job.code,
            folder=job.entry.folder,
        )
        for job in jobs
    ]
    first = jobs[0].entry
    return Invocation(
        id=first.invocation_id, tasks=tasks, exit_code=exit_code, config=mask_secrets(first.config or {})
    )
