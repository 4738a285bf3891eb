# SPDX-License-Identifier: Apache-2.0
"""The rules of executors on a real Ray cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.launch.ray_cluster import RayCluster, ray_jobs
from tests.plugins.executor_rules import check_cancelling, check_states_logs_and_dependencies

pytestmark = pytest.mark.slow


def test_states_logs_and_dependencies(ray_cluster: RayCluster, tmp_path: Path) -> None:
    check_states_logs_and_dependencies(lambda name: ray_jobs(ray_cluster, tmp_path / name), tmp_path)


def test_cancelling(ray_cluster: RayCluster, tmp_path: Path) -> None:
    check_cancelling(lambda name: ray_jobs(ray_cluster, tmp_path / name), tmp_path)
