# SPDX-License-Identifier: Apache-2.0
"""Small pipelines and a place for them."""

from __future__ import annotations

import os
from pathlib import Path

from newskills.base.plan import Command, CommandGroup, Job, Pipeline, Script
from newskills.launch.clusters.config import ClusterConfig


def job(name: str, shell: str, **settings: object) -> Job:
    """One client that runs a piece of shell."""
    command = Command(name="main", script=Script(argv=("bash", "-c", shell)))
    return Job(name=name, groups=(CommandGroup(name="group", commands=(command,)),), **settings)


def pipeline(name: str, *jobs: Job) -> Pipeline:
    return Pipeline(name=name, jobs=jobs)


def cluster(folder: Path, **settings: object) -> ClusterConfig:
    return ClusterConfig(job_dir=str(folder / "jobs"), **settings)


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "NEWSKILLS_EXPERIMENTS_DIR": str(folder / "experiments"), **more}
