# SPDX-License-Identifier: Apache-2.0
"""A plan: jobs in the order in which they are submitted, and what goes with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from newskills.base.plan import Job
from newskills.launch.declarative import CommandGroup, JobDict
from newskills.pipelines.placement.shipments import Shipment

_STRANGE = re.compile(r"[^A-Za-z0-9_.+=@]+")


class CommandPlan(Struct, frozen=True):
    """What a command would do: the `text` that its dry run prints, and the `jobs` of a cluster, in their order."""

    text: str
    jobs: tuple[Job, ...]


class Plan(Struct, kw_only=True):
    """Jobs in an order in which dependencies come first, and what the declarative API has no words for.

    extras     job name → further fields of `base.plan.Job`
    secrets    variables that the jobs need besides the shell's own
    prefix     of the names of jobs that are added from now on
    shipments  folder as clients see it → what is copied there before
    """

    jobs: list[JobDict] = []
    extras: dict[str, dict[str, Any]] = {}
    secrets: dict[str, str] = {}
    prefix: str = ""
    shipments: dict[str, Shipment] = {}

    def add(
        self, name: str, groups: Sequence[CommandGroup], needs: Sequence[JobDict] = (), **extra: Any
    ) -> JobDict:
        """Add a job called `name`, with a number behind it where the name is taken."""
        name = f"{self.prefix}{name}"
        wanted, number = name, 2
        while name in self.extras:
            name, number = f"{wanted}-{number}", number + 1
        job = JobDict(name=name, groups=groups, dependencies=list(needs))
        self.jobs.append(job)
        self.extras[name] = extra
        return job


def unique_jobs(jobs: Sequence[JobDict]) -> list[JobDict]:
    """Return each job once."""
    return list({job["name"]: job for job in jobs}.values())


def job_name(label: str) -> str:
    """Turn a label into the name of a job: `gsm8k-rs0 chunk 3` → `gsm8k-rs0-chunk-3`."""
    return _STRANGE.sub("-", label).strip("-.") or "run"
