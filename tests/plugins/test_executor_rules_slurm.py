# SPDX-License-Identifier: Apache-2.0
"""The rules of executors on a real Slurm cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.launch.slurm_cluster import require_cluster, slurm
from tests.plugins.executor_rules import Make, check_cancelling, check_states_logs_and_dependencies


@pytest.fixture(scope="module", autouse=True)
def cluster() -> None:
    require_cluster()


def make(folder: Path) -> Make:
    return lambda name: slurm(folder / name, environ=os.environ, dependency_type="afterany")


def test_states_logs_and_dependencies(tmp_path: Path) -> None:
    check_states_logs_and_dependencies(make(tmp_path), tmp_path)


def test_cancelling(tmp_path: Path) -> None:
    check_cancelling(make(tmp_path), tmp_path)
