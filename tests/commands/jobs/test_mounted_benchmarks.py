# SPDX-License-Identifier: Apache-2.0
"""Benchmarks in a folder that is mounted into the jobs of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.running import ns, write

from newskills.base.errors import UnknownNameError
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.machines.shell import LocalMachine
from newskills.pipelines.placement.cluster import ClusterPaths
from newskills.pipelines.placement.mounted_benchmarks import _copy_python_files, mounted_benchmarks
from newskills.pipelines.placement.packaged_code import PackagedCode
from newskills.run.planning.plan import parse_benchmarks

CONSTANTS = "METRICS_TYPE = 'math'\nGENERATION_ARGS = '++prompt_config=generic/math'\n"
GROUP = "IS_BENCHMARK_GROUP = True\nBENCHMARKS = {'pair.sums': {}, 'pair.more': {}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As on the cluster's disk: a benchmark, and a group of two."""
    place = tmp_path / "lustre/benchmarks"
    for name in ("mine", "pair/sums", "pair/more"):
        package = place / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(
            "METRICS_TYPE = 'math'\nGENERATION_ARGS = '++prompt_config=generic/math'\n"
        )
        write(package / "test.jsonl", [{"problem": "1 + 1?", "expected_answer": "2"}])
    (place / "pair/__init__.py").write_text(GROUP)
    return place


def paths(folder: Path, *env: str) -> ClusterPaths:
    mounts = [f"{folder}:/benchmarks"]
    cluster = ClusterConfig(name="far", executor="slurm", mounts=mounts, env_vars=list(env))
    return ClusterPaths(cluster=cluster, contained=True, packaged=PackagedCode(cluster))


def test_the_name_in_containers_leads_to_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMO_SKILLS_EXTRA_DATASETS", "/benchmarks")
    assert mounted_benchmarks(paths(folder)) == {folder: None}
    monkeypatch.delenv("NEMO_SKILLS_EXTRA_DATASETS")
    assert mounted_benchmarks(paths(folder)) == {}
    there = paths(folder, "NEMO_SKILLS_EXTRA_DATASETS=/benchmarks")
    assert mounted_benchmarks(there) == {folder: None}
    (run,) = parse_benchmarks("mine:4", data_dir=None, split=None, mounted=mounted_benchmarks(there))
    assert (run.name, run.samples, run.input_file) == ("mine", 4, folder / "mine/test.jsonl")
    assert there.client_path(str(run.input_file), "The input") == "/benchmarks/mine/test.jsonl"


def test_behind_ssh_the_code_is_read_and_the_data_stays(folder: Path) -> None:
    copy = _copy_python_files(LocalMachine(), folder)
    assert copy is not None
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()) == [
        "mine/__init__.py",
        "pair/__init__.py",
        "pair/more/__init__.py",
        "pair/sums/__init__.py",
    ]
    runs = parse_benchmarks("mine,pair", data_dir=None, split=None, mounted={copy: Path("/benchmarks")})
    assert [(run.name, str(run.input_file)) for run in runs] == [
        ("mine", "/benchmarks/mine/test.jsonl"),
        ("pair.sums", "/benchmarks/pair/sums/test.jsonl"),
        ("pair.more", "/benchmarks/pair/more/test.jsonl"),
    ]
    assert {run.group_at for run in runs} == {"", "/benchmarks/pair"}
    with pytest.raises(UnknownNameError):
        parse_benchmarks("mine", data_dir=None, split=None)


def test_a_folder_without_code_is_none(tmp_path: Path) -> None:
    assert _copy_python_files(LocalMachine(), tmp_path) is None
    assert _copy_python_files(LocalMachine(), tmp_path / "nowhere") is None


def test_jobs_are_planned_with_the_name_in_containers(folder: Path, tmp_path: Path) -> None:
    configs = tmp_path / "cluster_configs"
    configs.mkdir()
    (configs / "here.yaml").write_text(
        f"executor: slurm\njob_dir: {tmp_path}/jobs\ncontainers:\n  nemo-skills: image:1\n"
        f"mounts:\n  - {folder}:/benchmarks\n  - {tmp_path}:/work\n"
        "env_vars:\n  - HF_HOME=/work/hf\n  - NEMO_SKILLS_EXTRA_DATASETS=/benchmarks\n"
    )
    line = (
        "ns eval --cluster=here --benchmarks=mine,pair --server_type=vllm --model=fake --output_dir=/work/out "
        "--server_address=http://node:8000/v1 --dry_run"
    )
    done = ns(line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = ns(f"{line} --show_scripts", cwd=tmp_path)
    assert "/benchmarks/mine/test.jsonl" in shown.stdout + done.stdout
    assert "/benchmarks/pair/more/test.jsonl" in shown.stdout + done.stdout
