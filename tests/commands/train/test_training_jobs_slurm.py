# SPDX-License-Identifier: Apache-2.0
"""Our own trainings as jobs of a real Slurm cluster: stopped by the limit, resumed behind it, followed, cancelled."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands.clusters import Place
from tests.launch.places import until
from tests.launch.slurm_cluster import require_cluster
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.records import Row
from newskills.base.store import read_rows, write_rows

FAST = "++trainer.threads=1 ++trainer.dtype=float32 ++trainer.lora.rank=4 ++batch_size=4 ++save_every=20"
LINE = f"ns sft --model=base --training_data=texts.jsonl {FAST}"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    require_cluster()
    place = Place(tmp_path)
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00")
    with_tokenizer(tiny_folder(tmp_path / "base", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    write_rows(tmp_path / "texts.jsonl", [{"input": f"AB{n}", "output": f"{n}BA<|end|>"} for n in range(16)])
    return place


def losses(out: Path) -> list[Row]:
    return [
        {name: row[name] for name in ("step", "loss", "grad_norm")} for row in read_rows(out / "metrics.jsonl")
    ]


@pytest.mark.timeout(900)
@pytest.mark.nightly
def test_a_training_that_the_limit_stops_reaches_the_same_numbers_in_the_job_behind(place: Place) -> None:
    """Slurm's warning before the time limit comes after the first checkpoint."""
    line = LINE.replace("save_every=20", "save_every=5")
    done = place.ns(f"{line} --cluster=real --expname=tune --output_dir=out --dependent_jobs=2 ++steps=600")
    assert done.returncode == 0, done.stderr
    assert "ns status tune" in done.stdout
    until(filled(place.folder / "out/checkpoints.jsonl"), "the first checkpoint")
    (job,) = place.experiments("tune")[0].jobs
    subprocess.run(["scancel", "--batch", "--signal=USR1", job.handle.partition(":")[0]], check=True)
    states = place.ended("tune", patience=600)
    logs = place.logs("tune")
    assert states == {"tune": "completed"}, (states, logs)
    assert "job time with exit code 75: the time limit is near" in logs
    assert logs.count("SFT: loading the model") == 2, logs
    here = place.ns(f"{line} --output_dir=here", "++steps=600")
    assert here.returncode == 0, here.stderr
    assert losses(place.folder / "out") == losses(place.folder / "here")
    name = "final_hf_model/model.safetensors"
    assert (place.folder / "out" / name).read_bytes() == (place.folder / "here" / name).read_bytes()


@pytest.mark.timeout(900)
@pytest.mark.nightly
def test_a_training_is_followed_and_cancelled_with_a_checkpoint(place: Place) -> None:
    done = place.ns(f"{LINE} --cluster=real --expname=long --output_dir=out ++steps=100000")
    assert done.returncode == 0, done.stderr
    checkpoints = place.folder / "out/checkpoints.jsonl"
    until(filled(checkpoints), "the first checkpoint")
    assert "running" in place.ns("ns status long").stdout
    assert "starts; its log is" in place.ns("ns logs long").stdout
    cancelled = place.ns("ns cancel long")
    assert cancelled.returncode == 0, cancelled.stderr
    assert set(place.ended("long").values()) == {"cancelled"}
    last = list(read_rows(checkpoints))[-1]
    assert (place.folder / "out" / last["state_path"]).is_dir()


@pytest.mark.timeout(900)
@pytest.mark.nightly
def test_two_nodes_train_together(place: Place) -> None:
    pytest.importorskip("trl")
    line = f"{LINE} --backend=trl --cluster=real --expname=two --output_dir=out --num_nodes=2 ++steps=4"
    done = place.ns(line)
    assert done.returncode == 0, done.stderr
    states = place.ended("two", patience=600)
    assert states == {"two": "completed"}, (states, place.logs("two"))
    here = place.ns(f"{LINE} --backend=trl --output_dir=here ++steps=4")
    assert here.returncode == 0, here.stderr
    for own, other in zip(losses(place.folder / "out"), losses(place.folder / "here"), strict=True):
        assert own["loss"] == pytest.approx(other["loss"], rel=1e-3)


def filled(path: Path) -> Callable[[], bool]:
    return lambda: path.is_file() and b"\n" in path.read_bytes()
