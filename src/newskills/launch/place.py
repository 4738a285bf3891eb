# SPDX-License-Identifier: Apache-2.0
"""What an executor gives to the one job script: how a step is started, and what stands above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from newskills.base.plan import Command, Job
from newskills.launch.cluster import ClusterConfig


class JobFolder(Struct, frozen=True, kw_only=True):
    """Where one job of an experiment keeps its scripts, ports, exit codes and logs, as its nodes see it.

    path  <job_dir>/<experiment>/<job>
    logs  folder of `<command>.log`; inside `path` unless the user gave a --log_dir
    code  the packaged code, in containers visible as /nemo_run/code
    """

    path: str
    logs: str
    code: str = ""


class Place(Protocol):
    """One executor's part of the job script."""

    cluster: ClusterConfig

    def header(self, job: Job, folder: JobFolder) -> Sequence[str]:
        """Lines below `#!/bin/bash`: `#SBATCH …`, empty for others."""
        ...

    def prologue(self, job: Job, folder: JobFolder) -> Sequence[str]:
        """Lines of bash before the first step: SLURM_MASTER_NODE and the like."""
        ...

    def step(self, job: Job, group: int, command: Command, folder: JobFolder) -> Sequence[str]:
        """Words of argv in front of `bash <folder>/<command>.sh`; `$`-variables of `prologue` may stand in them
        as the renderer's `Variable`."""
        ...

    def environment(self, command: Command) -> Mapping[str, str]:
        """Variables with values that are no secrets, from the cluster config."""
        ...
