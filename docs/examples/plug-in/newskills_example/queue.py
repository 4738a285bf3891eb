"""Executor `queue`: jobs of one machine, one after the other, for a machine whose GPU fits one job."""

from __future__ import annotations

from collections.abc import Sequence

from newskills.base.plan import Job
from newskills.launch.executors.none import Processes
from newskills.launch.place import JobFolder
from newskills.launch.registry import ExecutorProperties


class Queue(Processes):
    """As executor none; who holds the lock runs, the others wait."""

    properties = ExecutorProperties(
        this_machine=True, shares_first_node=True, containers="none", has_accounts=False, has_time_limits=False
    )

    def prologue(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ['exec {job_queue}>>"${XDG_RUNTIME_DIR:-$HOME}/newskills-queue.lock" && flock "$job_queue"']
