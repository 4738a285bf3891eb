# SPDX-License-Identifier: Apache-2.0
"""The evaluation server with a cluster config whose executor submits jobs: containers of this machine (podman)."""

from __future__ import annotations

import os
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.commands.trainers import adding, prepare, serving
from tests.conftest import FakeServerFactory
from tests.launch.containers import IMAGE, left, podman
from tests.server import Fault

from newskills.launch.experiments import ExperimentRecords

__all__ = ["podman"]

PACKAGES = f"{sysconfig.get_path('purelib')}:/packages:ro"


@pytest.fixture
def place(tmp_path: Path, podman: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    prepare(tmp_path, ("aime25", "gsm8k"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "box.yaml").write_text(
        "executor: local\nengine: podman\nskip_hf_home_check: true\n"
        f"containers: {{nemo-skills: {IMAGE}}}\nmounts: ['{tmp_path}:{tmp_path}', '{PACKAGES}']\n"
        f"env_vars: ['PYTHONPATH=/packages']\njob_dir: {tmp_path}/jobs\n"
    )
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    return tmp_path


def options(place: Path) -> list[str]:
    return ["--cluster=box", "--config-dir=config", f"--data-dir={place}/data"]


@pytest.mark.nightly
def test_a_server_that_was_killed_left_its_jobs_to_the_next_one(
    place: Path, fake_server: FakeServerFactory
) -> None:
    model = fake_server(adding(Fault(kind="delay", seconds=3.0, marker="Add 7")))
    with serving(place, *options(place)) as served, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.evaluate, "aime25", router=model.url)
        while len(model.records) < 10:
            time.sleep(0.05)
        served.process.kill()
        with pytest.raises(OSError):  # noqa: PT011 - the connection is gone, in one way or another
            waiting.result(300)
    with serving(place, *options(place)) as served:
        status, answer = served.evaluate("aime25", router=model.url)
        assert status == 200, (answer, served.said)
        assert answer["raw_metrics"]["aime25"]["pass@1"]["symbolic_correct"] == 100.0
        assert len(served.jobs) == 1
    assert len(model.records) == 10
    assert len(ExperimentRecords(os.environ).all_of("rollout-3-aime25")) == 1


@pytest.mark.nightly
def test_a_cancelled_job_leaves_no_container(place: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(adding(Fault(kind="hang")))
    with serving(place, *options(place)) as served:
        begun = served.call(
            "/jobs", {"rollout_id": 1, "router_url": model.url, "benchmarks": [{"name": "aime25"}]}
        )[1]
        while not model.records:
            time.sleep(0.05)
        assert served.call(f"/jobs/{begun['job_id']}", method="DELETE")[1]["status"] == "cancelled"
    assert left(place) == []
