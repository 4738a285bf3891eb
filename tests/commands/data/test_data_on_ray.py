# SPDX-License-Identifier: Apache-2.0
"""Grading and training data on Ray Data: byte for byte what one machine makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.launch.ray.test_ray_node import free_port
from tests.launch.ray_cluster import RayCluster

PLAIN = "++filters.remove_contaminated=false ++filters.remove_len_outlier_problems=false"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of answers, right and wrong, with problems that stand in several of them."""
    for number in range(3):
        rows = [
            {
                "problem": f"What is {n} + {number % 2}?",
                "generation": f"Way {number}: \\boxed{{{n if n % 3 else 0}}}",
                "expected_answer": str(n),
                "symbolic_correct": bool(n % 3),
            }
            for n in range(40)
        ]
        (tmp_path / f"in-{number}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def variables(cluster: RayCluster) -> dict[str, str]:
    names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_UV_RUN_RUNTIME_ENV", "RAY_USAGE_STATS_ENABLED")
    return {"RAY_ADDRESS": f"127.0.0.1:{cluster.port}", **{name: cluster.environ[name] for name in names}}


@pytest.mark.nightly
def test_ray_reads_files_only(tmp_path: Path) -> None:
    done = ns("ns grade --executor=ray", cwd=tmp_path, stdin="{}\n")
    assert done.returncode == 2
    assert "--executor=ray reads files: give --input_files" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "ns grade --grader=math --input_files in-0.jsonl",
        f"ns prepare_training_data ++output_path=out.jsonl ++input_files='in-*.jsonl' {PLAIN}",
    ],
)
def test_no_ray_is_installed(folder: Path, line: str) -> None:
    (folder / "ray.py").write_text("raise ImportError('there is none')\n")
    done = ns(f"{line} --executor=ray", cwd=folder, env={"PYTHONPATH": str(folder)})
    assert done.returncode != 0
    assert "--executor=ray needs Ray Data (there is none). pip install 'ray[data]'" in done.stderr


@pytest.mark.nightly
@pytest.mark.slow
def test_no_cluster_is_reached(folder: Path) -> None:
    pytest.importorskip("ray")
    env = {"RAY_ADDRESS": f"127.0.0.1:{free_port()}"}
    done = ns("ns grade --grader=math --executor=ray --input_files in-0.jsonl", cwd=folder, env=env, timeout=400)
    assert done.returncode != 0
    assert f"No Ray cluster is reached at {env['RAY_ADDRESS']}" in done.stderr
    assert "Set RAY_ADDRESS" in done.stderr


@pytest.mark.nightly
@pytest.mark.slow
def test_graded_rows_are_those_of_one_machine(ray_cluster: RayCluster, folder: Path) -> None:
    line = "ns grade --grader=math --input_files in-0.jsonl in-1.jsonl in-2.jsonl"
    here = ns(line, cwd=folder)
    assert here.returncode == 0, here.stderr
    there = ns(f"{line} --executor=ray", cwd=folder, env=variables(ray_cluster), timeout=400)
    assert there.returncode == 0, there.stderr
    assert there.stdout == here.stdout
    assert there.stderr.endswith(here.stderr)


@pytest.mark.nightly
@pytest.mark.slow
def test_training_data_is_that_of_one_machine(ray_cluster: RayCluster, folder: Path) -> None:
    line = f"ns prepare_training_data ++input_files='in-*.jsonl' ++output_path=out.jsonl {PLAIN}"
    made = {}
    for options, env in (("", {}), ("--executor=ray", variables(ray_cluster))):
        done = ns(f"{line} {options}", cwd=folder, env=env, timeout=400)
        assert done.returncode == 0, done.stderr
        made[options] = [path.read_bytes() for path in sorted(folder.glob("out.jsonl*"))]
        for path in folder.glob("out.jsonl*"):
            path.unlink()
    assert made[""] == made["--executor=ray"]
    assert len(made[""][0]) > 1000
    (folder / "in-1.jsonl").write_text("nonsense\n")
    refused = ns(f"{line} --executor=ray", cwd=folder, env=variables(ray_cluster), timeout=400)
    assert refused.returncode != 0
    assert "in-1.jsonl, line 1" in refused.stderr
