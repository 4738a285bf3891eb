# SPDX-License-Identifier: Apache-2.0
"""Modules that Dockerfiles, configurations and job scripts of all versions name: `newskills.interop.…`."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from newskills_evaluator import harness, nel_environments
from newskills_evaluator.deployments import programs

NUMBERS = {"gsm8k": {"pass@1": {"num_entries": 4, "symbolic_correct": 75.0}}}


def run(module: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", f"newskills.interop.{module}", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_an_image_finds_the_file_for_the_launcher() -> None:
    old = import_module("newskills.interop.harness")
    assert old.target() == harness.target()
    assert "newskills.interop.harness" in harness.target().read_text(encoding="utf-8").splitlines()[1]
    done = run("harness", "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_nel_is_told_where_the_environments_are() -> None:
    assert Path(run("nel_environments").stdout.strip()) == Path(nel_environments.__file__).resolve()


def test_a_job_of_an_earlier_plan_ends_its_work(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps(NUMBERS))
    facts = tmp_path / "task.json"
    facts.write_text(json.dumps({"config": {"type": "gsm8k"}, "target": {"api_endpoint": {"model_id": "m"}}}))
    done = run("artifacts", tmp_path, facts, "ns", "eval", "--benchmarks=gsm8k")
    assert (done.returncode, done.stderr) == (0, "")
    results = yaml.safe_load((tmp_path / "results.yml").read_text())
    assert results["command"] == "ns eval --benchmarks=gsm8k"
    scores = results["results"]["tasks"]["gsm8k"]["metrics"]["pass@1"]["scores"]
    assert scores["symbolic_correct"]["value"] == 75.0
    (tmp_path / "metrics.json").unlink()
    assert "has no metrics.json" in run("artifacts", tmp_path, facts, "ns").stderr


@pytest.mark.parametrize("module", [programs.ARTIFACTS, programs.AUTO_EXPORT, programs.BALANCER])
def test_programs_of_job_scripts_are_there(module: str) -> None:
    new = module.replace("newskills.interop", "newskills_evaluator")
    assert import_module(module).main is import_module(new).main
