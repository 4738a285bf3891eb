# SPDX-License-Identifier: Apache-2.0
"""The evaluation server with a Slurm cluster, which runs the jobs of each benchmark."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.commands.clusters import reachable_server
from tests.commands.trainers import adding, prepare, serving
from tests.launch.slurm_cluster import require_cluster
from tests.server import Fault


def test_metrics_come_from_the_cluster_and_a_stop_reaches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_cluster()
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    prepare(tmp_path, ("aime25",))
    (tmp_path / "config").mkdir()
    text = f"executor: slurm\ndefault_timeout: 00:10:00\njob_dir: {tmp_path}/jobs\n"
    (tmp_path / "config" / "real.yaml").write_text(text)
    options = ["--cluster=real", "--config-dir=config", f"--data-dir={tmp_path}/data"]
    with reachable_server(adding()) as model, serving(tmp_path, *options) as served:
        status, answer = served.evaluate("aime25", router=model.url, rollout=1, timeout=200)
        assert status == 200, (answer, served.said)
        assert answer["raw_metrics"]["aime25"]["pass@1"]["symbolic_correct"] == 100.0
    with reachable_server(adding(Fault(kind="hang"))) as model, serving(tmp_path, *options) as served:
        wanted = {"rollout_id": 2, "router_url": model.url, "benchmarks": [{"name": "aime25"}]}
        job_id = served.call("/jobs", wanted)[1]["job_id"]
        while not model.records:
            time.sleep(0.1)
        assert served.call(f"/jobs/{job_id}", method="DELETE")[1]["status"] == "cancelled"
