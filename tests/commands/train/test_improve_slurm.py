# SPDX-License-Identifier: Apache-2.0
"""A round of `ns improve` as jobs of a real Slurm cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.clusters import Place
from tests.launch.places import until
from tests.launch.slurm_cluster import require_cluster
from tests.recipes.improve.words import KEYS, words_benchmark, write_training

from newskills.base.store import read_rows


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_round_that_is_killed_resumes_in_the_job_behind(tmp_path: Path, small_model: Path) -> None:
    """Two jobs; the first is killed in the middle of the training, the second ends the round."""
    require_cluster()
    place, folder = Place(tmp_path), tmp_path
    place.config("real", "executor: slurm\ndefault_timeout: 00:30:00")
    write_training(folder, "Item", ("yes", "no"))
    benchmark = words_benchmark(folder, "words", "Item", "yes")
    assert place.ns(f"ns prepare_data {benchmark}").returncode == 0
    out = folder / "out"
    line = (
        f"ns improve --cluster=real --expname=better --model={small_model} --benchmark={benchmark} --output_dir={out} "
        f"--training_data={folder}/train.jsonl --solutions={folder}/solutions.jsonl --rounds=1 --dependent_jobs=1 "
        f"--data_dir={place.env['NEWSKILLS_DATA_DIR']}"
    )
    names = ("problems", "samples", "max_tokens", "held_out", "epochs", "batch_size", "learning_rate")
    keys = [f"++{name}={getattr(KEYS, name)}" for name in names]
    done = place.ns(line, *keys, "++save_every=1", "++trainer.threads=1")
    assert done.returncode == 0, done.stderr
    checkpoints = out / "rounds/round-01/training/checkpoints.jsonl"
    until(lambda: checkpoints.is_file() and b"\n" in checkpoints.read_bytes(), "the first checkpoint")
    killed = list(workers_of(out))
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    states = place.ended("better", patience=900)
    assert set(states.values()) == {"completed"}, (states, place.logs("better"))
    (record,) = read_rows(out / "rounds.jsonl")
    assert record["kept"], record
    steps = [row["step"] for row in read_rows(out / "rounds/round-01/training/metrics.jsonl")]
    assert steps == list(range(1, len(steps) + 1))
    assert (out / "report.md").is_file()
    assert (out / "models/round-01").is_dir()


def workers_of(out: Path) -> Iterator[int]:
    """Processes on this machine, which plays all nodes, that improve a model into `out`."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"improve" in words and f"--output_dir={out}".encode() in words:
            yield int(path.parent.name)
