# SPDX-License-Identifier: Apache-2.0
"""What `newskills.profile_evaluate` returns: what was submitted, how its tasks ended, and their scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.interop.export_results import flat_scores
from newskills.interop.invocations import InvocationJob, State
from newskills.interop.oversight import JobStatus
from newskills.interop.results_yml import task_results


class InvocationTask(Struct, frozen=True, kw_only=True):
    """A task: `job_id` as `ns status` takes it, `state` when the call returned, `folder` of the run on its machine."""

    job_id: str
    name: str
    state: State
    exit_code: int | None = None
    folder: Path

    @property
    def scores(self) -> dict[str, float]:
        """Name of a score → its value; empty where no results lie on this machine (yet)."""
        try:
            return flat_scores(task_results(self.folder / "artifacts"))
        except DataError:
            return {}


class Invocation(Struct, frozen=True, kw_only=True):
    """An evaluation that was submitted: `id` for `ns status`, its tasks, the first exit code that is not 0."""

    id: str
    tasks: list[InvocationTask]
    exit_code: int = 0

    @classmethod
    def submitted(cls, entries: Sequence[InvocationJob]) -> Invocation:
        """Return an invocation that goes on after the call."""
        return cls.ended([JobStatus(entry, "pending") for entry in entries], 0)

    @classmethod
    def ended(cls, jobs: Iterable[JobStatus], exit_code: int) -> Invocation:
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
        return cls(id=tasks[0].job_id.rpartition(".")[0], tasks=tasks, exit_code=exit_code)
