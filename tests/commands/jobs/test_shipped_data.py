# SPDX-License-Identifier: Apache-2.0
"""Prepared data that jobs do not see where it lies goes with them: into containers, and to the other side of ssh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.commands.clusters import SUMS, Place, answers, reachable_server
from tests.commands.running import rows_of
from tests.conftest import FakeServerFactory
from tests.launch.containers import IMAGE, left, podman
from tests.launch.needs import lacking
from tests.launch.slurm_login import OTHER, Login, login

from newskills.base.errors import ConfigError
from newskills.launch.clusters.config import ClusterConfig
from newskills.pipelines.placement import shipments

__all__ = ["login", "podman"]

PACKAGES = sysconfig.get_path("purelib")
BOX = """
executor: local
engine: podman
skip_hf_home_check: true
containers: {{nemo-skills: {image}}}
mounts: ['{folder}/work:/work', '{packages}:/packages:ro']
env_vars: ['PYTHONPATH=/packages']
"""
LINE = "ns eval --benchmarks=./sums.py:2 --server_type=vllm --model=fake --num_jobs=1"


def copies(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "data").rglob("test.jsonl"))


@pytest.mark.nightly
def test_containers_see_data_that_no_mount_holds(
    tmp_path: Path, podman: None, fake_server: FakeServerFactory
) -> None:
    place = Place(tmp_path)
    (tmp_path / "work").mkdir()
    place.config("box", BOX.format(image=IMAGE, folder=tmp_path, packages=PACKAGES))
    server = fake_server(answers())
    line = f"{LINE} --cluster=box --server_address={server.url}"
    shown = place.ns(f"{line} --output_dir=/work/out --dry_run")
    assert shown.returncode == 0, shown.stderr
    assert not (tmp_path / "jobs").exists()
    done = place.ns(f"{line} --output_dir=/work/out --expname=first")
    assert done.returncode == 0, done.stderr + place.logs("first")
    assert done.stderr.count("is copied to") == 1
    rows = rows_of(tmp_path / "work/out/eval-results/own-sums/output-rs1.jsonl")
    assert [row["id"] for row in rows] == [row["id"] for row in SUMS]
    metrics = json.loads((tmp_path / "work/out/metrics.json").read_text())["own-sums"]
    assert metrics["pass@1[avg-of-2]"]["symbolic_correct"] == 100.0
    [copy] = copies(tmp_path / "jobs")
    again = place.ns(f"{line} --output_dir=/work/again --expname=second")
    assert again.returncode == 0, again.stderr + place.logs("second")
    assert "is copied to" not in again.stderr
    assert copies(tmp_path / "jobs") == [copy]
    assert left(tmp_path) == []


@pytest.mark.nightly
def test_a_generation_over_a_benchmark_that_no_mount_holds(
    tmp_path: Path, podman: None, fake_server: FakeServerFactory
) -> None:
    place = Place(tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "data/gsm8k").mkdir(parents=True)
    (tmp_path / "data/own-sums/test.jsonl").rename(tmp_path / "data/gsm8k/test.jsonl")
    place.config("box", BOX.format(image=IMAGE, folder=tmp_path, packages=PACKAGES))
    server = fake_server(answers())
    done = place.ns(
        "ns generate ++dataset=gsm8k ++prompt_config=generic/math --server_type=vllm --model=fake --cluster=box "
        f"--server_address={server.url} --output_dir=/work/out --expname=made"
    )
    assert done.returncode == 0, done.stderr + place.logs("made")
    assert len(rows_of(tmp_path / "work/out/output.jsonl")) == len(SUMS)


@pytest.fixture
def far(tmp_path: Path, login: Login) -> Place:
    """As another user, who cannot read what this one has prepared, behind ssh."""
    python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    words = ["setpriv", f"--reuid={OTHER}", "--clear-groups", "env", f"PYTHONPATH={PACKAGES}", python, "-c"]
    if subprocess.run([*words, "import msgspec, aiohttp"], capture_output=True, check=False, cwd="/").returncode:
        lacking("SLURM", f"'{OTHER}' has no {python} that can read {PACKAGES}")
    tmp_path.chmod(0o700)
    place = Place(tmp_path)
    place.env["NEWSKILLS_SSH_CONFIG"] = login.environ["NEWSKILLS_SSH_CONFIG"]
    tunnel = login.tunnel()
    (tmp_path / "far.yaml").write_text(
        f"executor: slurm\ndefault_timeout: 00:10:00\njob_dir: {login.folder}/shipped\n"
        f"env_vars: ['PYTHONPATH={PACKAGES}']\n"
        f"ssh_tunnel: {{host: {tunnel.host}, pre_command: {json.dumps(tunnel.pre_command)}}}\n"
    )
    return place


def test_data_of_a_laptop_goes_to_the_cluster(far: Place, login: Login) -> None:
    with reachable_server(answers()) as server:
        out = login.folder / "out"
        line = f"{LINE} --cluster={far.folder}/far.yaml --server_address={server.url} --output_dir={out} --expname=far"
        shown = far.ns(f"{line} --dry_run")
        assert shown.returncode == 0, shown.stderr
        assert not (login.folder / "shipped").exists()
        rehearsed = far.ns(line.replace("ns eval", "ns rehearse eval"))
        assert "[wrong] run" not in rehearsed.stdout, rehearsed.stdout
        done = far.ns(line)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("is copied to") == 1
        assert set(far.ended("far").values()) == {"completed"}, far.logs("far")
        [copy] = copies(login.folder / "shipped")
        assert copy.stat().st_uid != os.getuid()
        assert rows_of(copy) == rows_of(far.folder / "data/own-sums/test.jsonl")
        assert (out / "metrics.json").is_file()
        assert "nothing to do" in far.ns(line).stderr


def test_what_is_too_large_is_not_copied_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vast").mkdir()
    (tmp_path / "vast/test.jsonl").write_text("x" * 2000)
    monkeypatch.setattr(shipments, "LARGEST", 1000)
    with pytest.raises(ConfigError, match="too large to copy automatically") as refused:
        shipments.describe_shipment(str(tmp_path / "vast"), ClusterConfig(name="big"), contained=True)
    assert "ns prepare_data vast --cluster=big --data_dir=" in str(refused.value)
