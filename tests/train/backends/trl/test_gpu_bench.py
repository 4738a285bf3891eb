# SPDX-License-Identifier: Apache-2.0
"""The script of the GPU figures runs on any machine; its operations are those of the formula."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.gpu.figures import grpo_flops, peak_of, sft_flops
from bench.gpu.spec import Work

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.slow
@pytest.mark.nightly
def test_the_script_runs_tiny(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    argv = [sys.executable, "-m", "bench.gpu.training", "--tiny", "--out", str(tmp_path / "found.json")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [(row["kind"], row["side"]) for row in found["rows"]] == [
        ("sft", "ours"),
        ("sft", "plain"),
        ("grpo", "ours"),
        ("grpo", "plain"),
    ]
    for row in found["rows"]:
        assert len(row["curve"]) == 4
        assert row["tokens_per_second"] > 0
        assert (row["mfu"] is None) == (peak_of(found["device"]) is None)
    assert done.stdout.count("| grpo |") == 2


def test_operations_of_a_step(tmp_path: Path) -> None:
    config = {"hidden_size": 4, "num_hidden_layers": 2, "intermediate_size": 8, "vocab_size": 10}
    config |= {"num_key_value_heads": 1, "num_attention_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    work = Work(steps=1, batch=3, length=6, problems=2, samples=5, prompt=4, tokens=9, micro=1, weights="full")
    weights = 2 * (2 * 16 + 2 * 4 * 2 + 3 * 32) + 40
    attention = 2 * 2 * 4 * 6
    assert sft_flops(tmp_path, work) == 3 * 6 * (6 * weights + 3 * attention)
    shorter = 2 * 2 * 4 * 7
    lora = Work(**{name: getattr(work, name) for name in work.__struct_fields__} | {"weights": "lora"})
    assert grpo_flops(tmp_path, lora, 3.0) == 10 * 7 * (2 * weights + shorter + 4 * weights + 3 * shorter)
    assert peak_of("NVIDIA H200") == 989e12
