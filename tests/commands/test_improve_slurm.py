# SPDX-License-Identifier: Apache-2.0
"""`ns improve` on a real Slurm cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.clusters import Place
from tests.commands.improving import improve_by_jobs
from tests.launch.slurm_cluster import require_cluster


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_round_that_is_killed_resumes_in_the_job_behind(tmp_path: Path, small_model: Path) -> None:
    require_cluster()
    place = Place(tmp_path)
    place.config("real", "executor: slurm\ndefault_timeout: 00:30:00")
    improve_by_jobs(place, "real", small_model)
