# SPDX-License-Identifier: Apache-2.0
"""The published cookbook of the Tinker API runs unmodified against the service."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.apps.tinker.services import KEY, service
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import read_rows

pytest.importorskip("tinker_cookbook")
pytestmark = [pytest.mark.slow, pytest.mark.nightly]
ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("kind", "metric", "steps"),
    [("sft", "train_mean_nll", 4), ("rl", "env/all/reward/total", 1), ("turns", "env/all/turns_per_episode", 1)],
)
def test_its_loops_and_environments(tmp_path: Path, kind: str, metric: str, steps: int) -> None:
    model = with_tokenizer(tiny_folder(tmp_path / "tiny", eos_token_id=VOCAB - 1, max_position_embeddings=2048))
    with service([model], tmp_path / "states") as address:
        argv = [
            sys.executable,
            "-m",
            "tests.apps.tinker.cookbook",
            kind,
            address,
            str(model),
            str(tmp_path),
        ]
        env = os.environ | {"TINKER_API_KEY": KEY, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [row for row in read_rows(tmp_path / "log/metrics.jsonl") if metric in row]
    assert len(rows) == steps, list(read_rows(tmp_path / "log/metrics.jsonl"))
    if kind == "sft":
        assert rows[-1][metric] < rows[0][metric]
    if kind == "turns":
        assert rows[0][metric] > 1
    last = list(read_rows(tmp_path / "log/checkpoints.jsonl"))[-1]
    assert last["state_path"].startswith("tinker://")
