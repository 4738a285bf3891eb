# SPDX-License-Identifier: Apache-2.0
"""NeMo Evaluator's own launcher beside `ns evaluate`: each reads what the other has written.

Needs a Python with nemo-evaluator-launcher: NEWSKILLS_LAUNCHER_PYTHON names it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.apps.evaluator.test_profile_evaluate import Project
from tests.commands.clusters import answers
from tests.conftest import FakeServerFactory

PYTHON = os.environ.get("NEWSKILLS_LAUNCHER_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="NEWSKILLS_LAUNCHER_PYTHON names no Python with nemo-evaluator-launcher"
)


@pytest.fixture
def project(tmp_path: Path, fake_server: FakeServerFactory) -> Project:
    return Project(tmp_path, fake_server(answers()).url)


def launcher(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(PYTHON).with_name("nemo-evaluator-launcher"))
    env = {**os.environ, **project.env, "NEMO_EVALUATOR_TELEMETRY_LEVEL": "0"}
    return subprocess.run(
        [program, *words], cwd=project.folder, env=env, capture_output=True, text=True, check=False
    )


def test_it_tells_how_our_jobs_are_doing(project: Project) -> None:
    invocation = project.submitted("ns evaluate -c mine.yaml")
    done = launcher(project, "status", invocation[:6], "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout[done.stdout.index("[\n") :])
    assert [(row["invocation"], row["job_id"], row["status"]) for row in rows] == [
        (invocation, f"{invocation}.0", "success")
    ]
    assert invocation in launcher(project, "info", invocation).stdout


@pytest.mark.parametrize("task", ["lm-evaluation-harness.ifeval", "tau2_bench_retail"])
def test_it_takes_what_we_compile(project: Project, task: str, tmp_path: Path) -> None:
    tool = tmp_path / "bin/docker"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexit 0\n")
    tool.chmod(0o755)
    project.config(evaluation={"tasks": [{"name": task, "env_vars": {"A": "HOME"}}], "env_vars": {"B": "$HOME"}})
    path = f"{tool.parent}{os.pathsep}{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"
    done = project.ns("ns evaluate -c mine.yaml", PATH=path, NEMO_EVALUATOR_TELEMETRY_LEVEL="0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{task}  " in done.stdout
    script = next((project.folder / "evaluations").rglob("run.sh")).read_text()
    assert "-e A" in script
    assert "-e B" in script
