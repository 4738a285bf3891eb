# SPDX-License-Identifier: Apache-2.0
"""Ids of `ns evaluate` on a real Slurm cluster behind real ssh: looked at, stopped, resumed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.apps.evaluator.evaluations import KEY, Evaluations
from tests.commands.clusters import RIGHT, SERVED
from tests.commands.running import ns
from tests.launch.slurm_cluster import require_cluster
from tests.launch.sshd import Sshd, sshd

__all__ = ["sshd"]

PORT = 18521


@pytest.fixture
def place(tmp_path: Path, sshd: Sshd) -> Evaluations:
    require_cluster()
    made = Evaluations(tmp_path)
    made.far(sshd)
    return made


def call(place: Evaluations, line: str) -> subprocess.CompletedProcess[str]:
    done = ns(line, cwd=place.folder, env=place.environ, timeout=180)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done


def status(place: Evaluations, invocation: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(call(place, f"ns status {invocation} --json").stdout)
    return rows


@pytest.mark.nightly
def test_a_batch_is_looked_at_stopped_and_resumed(place: Evaluations) -> None:
    script = json.dumps({"answer": {"kind": "table", "table": RIGHT}, "latency": {"fixed": 1.0}})
    command = shlex.join([sys.executable, str(SERVED), "--port", str(PORT), "--script", script])
    place.environ["MODEL_KEY"] = KEY
    place.config(
        execution=place.slurm(),
        deployment={"type": "generic", "command": command, "port": PORT, "served_model_name": "m"},
        evaluation=place.tasks()
        | {
            "nemo_evaluator_config": {"config": {"params": {"parallelism": 1}}},
            "env_vars": {"OTHER_KEY": "host:MODEL_KEY"},
        },
    )
    said = call(place, "ns evaluate -c ./config.yaml --batch far").stdout
    found = re.search(r"✓ Evaluation submitted: ([0-9a-f]{16})$", said, re.MULTILINE)
    assert found is not None
    deadline = time.monotonic() + 300
    while not ((job := status(place, found[1][:7])[0])["progress"] or {}).get("progress"):
        assert time.monotonic() < deadline, job
        time.sleep(0.2)
    assert (job["job_id"], job["status"]) == (f"{found[1]}.0", "running")
    first = job["data"]
    assert {"slurm_job_id", "remote_rundir_path", "hostname", "username"} <= set(first)
    assert f"cancelled {found[1]}.0" in call(place, f"ns cancel {found[1]}").stdout
    while (state := status(place, found[1])[0]["status"]) != "killed":
        assert time.monotonic() < deadline, state
        time.sleep(0.5)
    assert "100.00%" in call(place, f"ns resume {found[1]} -f").stdout
    (job,) = status(place, found[1])
    assert job["status"] == "success"
    again = job["data"]
    assert again["slurm_job_id"] != first["slurm_job_id"]
    assert again["remote_rundir_path"] == first["remote_rundir_path"]
    assert "100.00%" in call(place, f"ns logs {found[1]}.0").stdout
    assert "own-sums_pass@1_symbolic_correct" in call(place, f"ns info {found[1]}").stdout
    assert KEY not in Path(place.environ["NEMO_EVALUATOR_EXEC_DB_FILE"]).read_text()
