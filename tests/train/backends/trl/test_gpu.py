# SPDX-License-Identifier: Apache-2.0
"""`pytest -m gpu`: training on an NVIDIA GPU, against the cpu trainer where both compute the same."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file
from tests.launch.needs import lacking
from tests.train.backends.trl.test_trl_trainer import GRPO, SETTINGS, SFT, close, fine_tune, metrics, reinforce
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import read_rows
from newskills.train.backends.trl.model import precision_of

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.gpu]


@pytest.fixture(scope="module", autouse=True)
def _gpu() -> None:
    """Skips where torch sees none, or fails where NEWSKILLS_TEST_GPU is set."""
    if not torch.cuda.is_available():
        driver = shutil.which("nvidia-smi")
        seen = (
            driver is not None and subprocess.run([driver, "-L"], check=False, capture_output=True).returncode == 0
        )
        lacking("GPU", "torch was built without CUDA here" if seen else "no NVIDIA GPU here: torch sees none")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=VOCAB - 1))


def test_sft_on_the_gpu_gives_the_losses_of_the_cpu_trainer(model: Path, tmp_path: Path) -> None:
    torch.cuda.reset_peak_memory_stats()
    assert fine_tune(model, tmp_path / "gpu")
    assert torch.cuda.max_memory_allocated() > 0, "nothing was computed on the GPU"
    assert fine_tune(model, tmp_path / "cpu", backend="cpu")
    close(tmp_path / "gpu", tmp_path / "cpu", ["loss", "grad_norm", "learning_rate", "tokens"])
    name = "checkpoint-000009/adapter_model.safetensors"
    mine, its = load_file(tmp_path / "gpu" / name), load_file(tmp_path / "cpu" / name)
    assert mine.keys() == its.keys()
    for key, value in mine.items():
        torch.testing.assert_close(value, its[key], rtol=1e-3, atol=1e-3)


def test_half_precision_learns_too(model: Path, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, dtype="auto")
    wanted = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    assert precision_of(settings) == wanted
    config = msgspec.structs.replace(SFT, steps=30)
    assert fine_tune(model, tmp_path / "half", config, settings)
    losses = [row["loss"] for row in metrics(tmp_path / "half")]
    assert all(math.isfinite(loss) for loss in losses)
    assert sum(losses[-5:]) < sum(losses[:5])


def test_grpo_samples_grades_and_steps_on_the_gpu(model: Path, tmp_path: Path) -> None:
    assert reinforce(model, tmp_path / "rl")
    rows = metrics(tmp_path / "rl")
    assert [row["step"] for row in rows] == list(range(1, GRPO.steps + 1))
    assert all(math.isfinite(row[name]) for row in rows for name in ("loss", "grad_norm", "reward"))
    samples = list(read_rows(tmp_path / "rl" / "samples.jsonl"))
    assert len(samples) >= GRPO.steps
    weights = load_file(tmp_path / "rl" / "checkpoint-000009" / "adapter_model.safetensors")
    assert all(torch.isfinite(value).all() for value in weights.values())


def test_a_run_of_the_gpu_goes_on_to_the_same_numbers(model: Path, tmp_path: Path) -> None:
    asked: list[int] = []
    assert not fine_tune(model, tmp_path / "stopped", stop=lambda: asked.append(1) or len(asked) == 4)
    assert fine_tune(model, tmp_path / "stopped")
    assert fine_tune(model, tmp_path / "whole")
    close(tmp_path / "stopped", tmp_path / "whole", ["loss", "tokens"])
    assert len(metrics(tmp_path / "whole")) == SFT.steps
