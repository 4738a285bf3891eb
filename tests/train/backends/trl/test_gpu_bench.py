# SPDX-License-Identifier: Apache-2.0
"""The script of the GPU figures runs on any machine; its operations are those of the formula."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.gpu.figures import grpo_flops, peak_of, sft_flops
from bench.gpu.run import AGAIN, all_parts, results, table
from bench.gpu.spec import Work

ROOT = Path(__file__).resolve().parents[4]


def run(out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = ["bash", "bench/gpu/run.sh", "--tiny", "--out", str(out), *words]
    environ = {**os.environ, "PYTHON": sys.executable}
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, env=environ, timeout=1700)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_script_runs_tiny_and_goes_on_with_what_is_left(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    none = run(tmp_path, "--seconds=0")
    assert none.returncode == AGAIN, none.stderr
    assert "Left: sft-ours, sft-plain" in none.stdout
    whole = run(tmp_path)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    found = json.loads((tmp_path / "results.json").read_text())
    names = ["sft-ours", "sft-plain", "grpo-ours", "grpo-plain", "padded-ours", "packed-ours", "curve-ours"]
    assert list(found["parts"]) == names
    for name in names:
        row = found["parts"][name]
        assert len(row["curve"]) == found["work"][name]["steps"]
        assert row["tokens_per_second"] > 0
        assert (row["gb"] is None) == (found["device"] == "cpu")
        assert (row["mfu"] is None) == (peak_of(found["device"]) is None)
    assert found["parts"]["sft-ours"]["estimate"] > found["parts"]["sft-ours"]["parts"]["weights"] > 0
    assert found["parts"]["sft-ours"]["tokens"] == 4 * 31 == found["parts"]["sft-plain"]["tokens"]
    assert {"sft: ours / plain TRL", "grpo: ours / plain TRL", "sft: packed / padded"} == set(
        found["tokens_per_second"]
    )
    kept = (tmp_path / "part-grpo-ours.json").stat().st_mtime_ns
    (tmp_path / "part-padded-ours.json").unlink()
    again = run(tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert (tmp_path / "part-padded-ours.json").exists()
    assert (tmp_path / "part-grpo-ours.json").stat().st_mtime_ns == kept


def test_a_part_that_fails_is_named_and_hides_no_other(tmp_path: Path) -> None:
    parts = all_parts(tiny=True)
    good = {
        "seconds": 1.0,
        "tokens_per_second": 10.0,
        "tokens": 5.0,
        "gb": 2.0,
        "curve": [1.0, 2.0],
        "estimate": 2.2e9,
    }
    (tmp_path / "part-sft-ours.json").write_text(json.dumps({"part": "sft-ours", **good}))
    (tmp_path / "part-sft-plain.json").write_text(
        json.dumps({"part": "sft-plain", "failed": "OutOfMemoryError: x"})
    )
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    record = results(parts, tmp_path, tmp_path)
    assert record["parts"]["sft-ours"]["estimate_over_measured"] == pytest.approx(1.1)
    assert record["tokens_per_second"] == {}
    shown = table(record)
    assert "| sft-plain | OutOfMemoryError: x |" in shown
    assert "| sft-ours | 1 | 10 |" in shown


CONFIG = {
    "hidden_size": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 8,
    "vocab_size": 10,
    "num_key_value_heads": 1,
    "num_attention_heads": 2,
}


def test_operations_of_a_step(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    work = Work(steps=1, batch=3, length=6, problems=2, samples=5, prompt=4, tokens=9, micro=1, weights="full")
    weights = 2 * (2 * 16 + 2 * 4 * 2 + 3 * 32) + 40
    attention = 2 * 2 * 4 * 6
    assert sft_flops(tmp_path, work) == 3 * 6 * (6 * weights + 3 * attention)
    shorter = 2 * 2 * 4 * 7
    lora = Work(**{name: getattr(work, name) for name in work.__struct_fields__} | {"weights": "lora"})
    assert grpo_flops(tmp_path, lora, 3.0) == 10 * 7 * (2 * weights + shorter + 4 * weights + 3 * shorter)
    assert peak_of("NVIDIA H200") == 989e12
