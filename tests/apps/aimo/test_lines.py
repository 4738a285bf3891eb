# SPDX-License-Identifier: Apache-2.0
"""The command lines of the recipe that this one replaces, word by word but for the package's name."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from newskills import aimo

OLD, NEW = "aimo3_recipe", "newskills.aimo"
HERE = Path(aimo.__file__).parent
LINES = {
    "python -m aimo3_recipe.training.train --stage full --base-model Qwen/Qwen2.5-14B": (
        "ns sft --model=Qwen/Qwen2.5-14B",
        "ns sft --model=outputs/sft_cot/final_hf_model",
        "ns grpo --model=outputs/sft_tir/final_hf_model",
    ),
    "python -m aimo3_recipe.training.train --stage cot --base-model Qwen/Qwen2.5-14B": (
        "--dataset=numinamath-cot --decontaminate=hendrycks_math,math-500,aime24,aime25,amc23,gsm8k",
        "++epochs=3.0 ++learning_rate=2e-05",
    ),
    "python -m aimo3_recipe.training.train --stage tir": (
        "--dataset=numinamath-tir",
        "ns sft --model=outputs/sft_cot/final_hf_model",
        "--output_dir=outputs/sft_tir",
    ),
    "python -m aimo3_recipe.training.train --stage rl --base-model Qwen/Qwen3-0.6B": (
        "--dataset=math-hard",
        "ns grpo --model=Qwen/Qwen3-0.6B",
        "++reward.correct=1.0 ++reward.wrong=-0.5 ++reward.no_answer=-0.5 ++reward.format.box=0.1",
    ),
    "python aimo3_recipe/training/tinker_rl_math.py model_name=Qwen/Qwen3-8B log_dir=./outputs": (
        "to train Qwen/Qwen3-8B, LoRA of rank 64",
        "writes  ./outputs",
    ),
    "python -m aimo3_recipe.evaluation.evaluate --model ./outputs/rl_math --benchmark math --use-vllm": (
        "ns eval --benchmarks=hendrycks_math:0 --model=outputs/rl_math --server_type=vllm --server_gpus=",
    ),
    'python -m aimo3_recipe.inference.generate --model ./outputs/rl_math --strategy tir --problem "..."': (
        "--with_sandbox=true ++prompt_config=qwen/math-tir ++code_execution=true ++code_tags=qwen",
    ),
    "python -m aimo3_recipe.training.train --stage rl --resume-from-checkpoint": (
        "ns grpo --model=outputs/sft_tir/final_hf_model",
    ),
    "python -m aimo3_recipe.training.train --stage rl --resume-from-checkpoint ./outputs/checkpoint-500": (
        "--output_dir=outputs/rl_math",
    ),
    "python -m aimo3_recipe.training.train --no-vllm": ("ns grpo",),
}
"""Line → what its plan says. The last one is that of `accelerate launch`, which starts it in several processes."""


@pytest.mark.parametrize("line", LINES)
def test_the_line_runs_and_plans_the_right_thing(line: str, tmp_path: Path) -> None:
    python, *words = shlex.split(line.replace(f"{OLD}/", f"{HERE}/").replace(OLD, NEW))
    assert python == "python"
    argv = [sys.executable, *words, "--dry_run"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())  # a longer path folds the lines of the table elsewhere
    for part in LINES[line]:
        assert " ".join(part.split()) in text
    assert not list(tmp_path.iterdir())


def test_all_flags_are_taken(tmp_path: Path) -> None:
    flags = (
        "--stage rl --base-model m --output-dir o --max-samples 9 --learning-rate 1e-5 --save-samples "
        "--sample-save-rate 0.5 --samples-filename s.jsonl --force-cpu --eval-steps 5 --eval-samples 6 "
        "--eval-batch-size 2 --num-generations 8 --no-vllm --no-flash-attn --report-to none --logging-steps 3 "
        "--run-name r --num-epochs 2 --save-steps 7 --use-llm-judge --llm-judge-model j --llm-judge-weight 0.3 "
        "--resume-from-checkpoint"
    )
    argv = [sys.executable, "-m", "newskills.aimo.training.train", *flags.split(), "--dry_run"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for part in (
        "++epochs=2.0",
        "++learning_rate=1e-05",
        "++save_every=7",
        "++batch_size=4 ++group_size=8",
        "++num_output_samples=9",
        "++reward.judge.weight=0.3 ++reward.judge.server.model=j",
        "--output_dir=o --backend=trl",
    ):
        assert part in done.stdout


@pytest.mark.parametrize(("model", "backend"), [("smollm2", "cpu"), ("Qwen/Qwen2.5-14B", "trl")])
def test_only_a_small_llama_goes_to_the_cpu_trainer(tmp_path: Path, model: str, backend: str) -> None:
    line = ["--stage", "cot", "--base-model", model, "--force-cpu", "--dry_run"]
    argv = [sys.executable, "-m", "newskills.aimo.training.train", *line]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"--backend={backend}" in done.stdout


def test_the_variables_of_weights_and_biases(tmp_path: Path) -> None:
    line = ["--stage", "rl", "--base-model", "m", "--report-to", "wandb", "--run-name", "r", "--dry_run"]
    argv = [sys.executable, "-m", "newskills.aimo.training.train", *line]
    said = [
        subprocess.run(argv, cwd=tmp_path, env={**os.environ, **env}, capture_output=True, text=True, check=True)
        for env in ({"WANDB_PROJECT": "maths"}, {"WANDB_DISABLED": "true"})
    ]
    assert """--wandb_name=r --wandb_project=maths""" in said[0].stdout
    assert "wandb" not in said[1].stdout
    assert "WANDB_DISABLED is set" in said[1].stderr
