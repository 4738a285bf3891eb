# SPDX-License-Identifier: Apache-2.0
"""Executors of this machine keep what is promised of clusters: experiments to wait for, and how models are served."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.commands.clusters import SUMS
from tests.commands.running import ns, write

from newskills.cli import main
from newskills.models.config import DEFAULT_PORT

BOX = """
executor: local
skip_hf_home_check: true
containers: {nemo-skills: "localhost/none:1", vllm: "localhost/none:1"}
mounts: ["FOLDER:/workspace", "FOLDER/models:/models"]
job_dir: FOLDER/jobs
"""
LINES = {
    "run_cmd": "ns run_cmd --run_after=nosuch CLUSTER true",
    "generate": "ns generate CLUSTER --run_after=nosuch --input_file=FOLDER/in.jsonl --output_dir=FOLDER/out "
    "--model=m --server_type=openai --server_address=http://127.0.0.1:9/v1 ++prompt_config=generic/math",
    "prepare_data": "ns prepare_data gsm8k CLUSTER --run_after=nosuch --data_dir=FOLDER/data",
}
SEED_LINE = (
    "ns eval --cluster=local --benchmarks=gsm8k:4 --model=/models/my-model --server_type=vllm "
    "--output_dir=/workspace/r"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    monkeypatch.setenv("NEWSKILLS_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    write(tmp_path / "in.jsonl", SUMS)
    (tmp_path / "cluster_configs").mkdir()
    (tmp_path / "cluster_configs/box.yaml").write_text(BOX.replace("FOLDER", str(tmp_path)))
    return tmp_path


@pytest.mark.parametrize(
    "cluster",
    ["", "--cluster=none", "--cluster=local", pytest.param("--cluster=box", marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("command", sorted(LINES))
def test_an_unknown_experiment_to_run_after_is_an_error(folder: Path, command: str, cluster: str) -> None:
    place = "/workspace" if cluster.endswith("box") else str(folder)
    line = LINES[command].replace("CLUSTER", cluster).replace("FOLDER", place)
    done = ns(line, cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Unknown experiment to run after 'nosuch'" in done.stderr
    assert "assuming that nosuch" not in done.stderr
    assert not list(folder.glob(f"jobs/{command}*"))


def test_a_model_without_gpus_and_address_is_asked_about_by_name(folder: Path) -> None:
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", DEFAULT_PORT)) == 0:
            pytest.skip(f"something listens on port {DEFAULT_PORT} here")
    write(folder / "data/gsm8k/test.jsonl", SUMS)
    for line in (SEED_LINE, SEED_LINE.replace("local", "box")):
        done = ns(line, cwd=folder)
        assert done.returncode == 2, line
        assert "--server_gpus=1" in done.stderr
        assert "Where is /models/my-model served?" in done.stderr
        assert not (folder / "r").exists()


def test_jobs_of_a_machine_with_gpus_get_all_of_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write(folder / "data/gsm8k/test.jsonl", SUMS)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("newskills.pipelines.models.visible_gpus", lambda: 2)
    line = SEED_LINE.replace("local", "box")
    assert main([*line.split()[1:], "--dry_run", "--show_scripts"]) == 0
    said = capfd.readouterr()
    assert "serving /models/my-model on all 2 GPUs of this machine" in said.err
    assert "--tensor-parallel-size\n    2" in said.out
