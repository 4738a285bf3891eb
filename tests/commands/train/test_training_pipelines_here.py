# SPDX-License-Identifier: Apache-2.0
"""Trainings and averages that run on this machine: only the trainer is played."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.commands.running import ns, rows_of, write
from tests.train.tiny import tensors, tiny_folder, with_tokenizer

VERL = Path(__file__).parents[2] / "train/pipelines/verl_stand_in"


@pytest.mark.nightly
def test_verl_is_rewarded_by_our_grader_and_leaves_a_model(tmp_path: Path) -> None:
    write(tmp_path / "rl.jsonl", [{"problem": f"{n} + {n}?", "expected_answer": 2 * n} for n in range(4)])
    with_tokenizer(tiny_folder(tmp_path / "base"))
    line = (
        f"ns verl ppo --hf_model={tmp_path}/base --prompt_data=rl.jsonl --output_dir=out --num_gpus=1 --backend=fsdp "
        "--disable_wandb ++algorithm.adv_estimator=grpo"
    )
    env = {"PYTHONPATH": str(VERL), "NEWSKILLS_EXPERIMENTS_DIR": str(tmp_path / "experiments")}
    done = ns(line, cwd=tmp_path, env=env, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rewards: [0.0, 1.0, 0.0, 1.0]" in done.stdout + done.stderr
    rows = rows_of(tmp_path / "out/data/train.jsonl")
    assert [row["reward_model"]["ground_truth"] for row in rows] == ["0", "2", "4", "6"]
    model = tmp_path / "out/final_hf_model"
    assert load_file(model / "model.safetensors").keys() == tensors().keys()
    assert (model / "tokenizer.json").is_file()
    assert (model / "config.json").is_file()


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """Three checkpoints of different weights; those of the third are of another shape."""
    for step in (1, 2, 3):
        folder = tiny_folder(tmp_path / f"hf/step_{step}")
        weights = {name: value + step for name, value in tensors().items()}
        if step == 3:
            weights["model.norm.weight"] = torch.zeros(5)
        save_file(weights, folder / "model.safetensors")
    return tmp_path


AVERAGE = "ns average_checkpoints --checkpoints hf --output_model=mean --remove_checkpoints_after_average"


def test_originals_go_when_their_mean_is_there(steps: Path) -> None:
    shown = ns(f"{AVERAGE} --steps=1,2 --dry_run", cwd=steps)
    assert "removes" in shown.stdout
    assert (steps / "hf/step_1").is_dir()
    done = ns(f"{AVERAGE} --steps=1,2", cwd=steps)
    assert done.returncode == 0, done.stderr
    mean = load_file(steps / "mean/model.safetensors")["model.norm.weight"]
    assert torch.allclose(mean, tensors()["model.norm.weight"] + 1.5)
    assert sorted(path.name for path in (steps / "hf").iterdir()) == ["step_3"]


def test_a_mean_that_cannot_be_made_removes_nothing(steps: Path) -> None:
    done = ns(f"{AVERAGE} --steps=1,3", cwd=steps)
    assert done.returncode != 0
    assert "hf/step_3 is a checkpoint of another model" in done.stderr
    assert len(list((steps / "hf").iterdir())) == 3
    assert not (steps / "mean").exists()


@pytest.mark.nightly
def test_a_killed_average_removes_nothing(steps: Path) -> None:
    """Killed while the mean is being written, which a large tensor makes slow enough to be seen."""
    for step in (1, 2):
        save_file({"large": torch.zeros(12_000_000)}, steps / f"hf/step_{step}/model.safetensors")
    words = [*AVERAGE.split()[1:], "--steps=1,2"]
    process = subprocess.Popen([sys.executable, "-m", "newskills", *words], cwd=steps, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 300
    while not list(steps.glob(".mean*")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(list((steps / "hf").iterdir())) == 3
    assert not (steps / "mean").exists()
    again = ns(f"{AVERAGE} --steps=1,2", cwd=steps)
    assert again.returncode == 0, again.stderr
    assert len(list((steps / "hf").iterdir())) == 1
