# SPDX-License-Identifier: Apache-2.0
"""`ns improve` on a real Ray cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.clusters import Place
from tests.commands.improving import improve_by_jobs
from tests.launch.ray_cluster import RayCluster


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_round_that_is_killed_resumes_in_the_job_behind(
    tmp_path: Path, small_model: Path, ray_cluster: RayCluster
) -> None:
    place = Place(tmp_path)
    place.env.update(RAY_AUTH_TOKEN=ray_cluster.environ["RAY_AUTH_TOKEN"])
    place.config("ray", f"executor: ray\nray: {{address: '{ray_cluster.address}', default_num_cpus: 0.5}}")
    improve_by_jobs(place, "ray", small_model)
