# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM in trainings, as a terminal and a scheduler send them: to real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import forkserver
from tests.apps.aimo.test_training import FULL, laid_out
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import read_rows, write_rows

FAST = ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    write_rows(tmp_path / "texts.jsonl", [{"input": f"AB{n}", "output": f"{n}BA<|end|>"} for n in range(10)])
    write_rows(tmp_path / "problems.jsonl", [{"question": f"AB{n}", "expected_answer": "A"} for n in range(10)])
    return tmp_path


def lines(path: Path) -> int:
    """Whole lines of a file that somebody else writes."""
    return path.read_bytes().count(b"\n") if path.is_file() else 0


@contextmanager
def begun(
    place: Path, *words: str, until: Callable[..., object], seconds: int = 900
) -> Iterator[subprocess.Popen[str]]:
    """A process with a session of its own, as a terminal gives it; `until` there is so much."""
    argv = [sys.executable, "-m", "newskills", *words]
    with subprocess.Popen(
        argv, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            deadline = time.monotonic() + seconds
            while not until():
                assert time.monotonic() < deadline
                assert process.poll() is None, process.communicate()
                time.sleep(0.02)
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def send(process: subprocess.Popen[str], number: int) -> str:
    """Ctrl-C reaches all processes of a terminal, SIGTERM the one that it is sent to."""
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "stopping after this step, with a checkpoint" in errors
    assert "Traceback" not in errors
    return said


def whole_up_to_its_checkpoint(folder: Path) -> int:
    """Every step that was done is there, and the last one has a checkpoint; how many."""
    last = list(read_rows(folder / "checkpoints.jsonl"))[-1]
    assert (folder / last["state_path"]).is_dir()
    assert [row["step"] for row in read_rows(folder / "metrics.jsonl")] == list(range(1, last["step"] + 1))
    return last["step"]


SIGNALS = [
    pytest.param(signal.SIGINT, id="int", marks=pytest.mark.nightly),
    pytest.param(signal.SIGTERM, id="term"),
]
KINDS = {
    "sft": ["sft", "--training_data=texts.jsonl"],
    "grpo": ["grpo", "--training_data=problems.jsonl", "++eval_type=exact", "++group_size=4", "++max_tokens=2"],
}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_between_checkpoints_loses_nothing(place: Path, kind: str, number: int) -> None:
    words = [*KINDS[kind], "--model=model", "--output_dir=out", *FAST, "++steps=100000", "++save_every=0"]
    with begun(place, *words, "++batch_size=2", until=lambda: lines(place / "out/metrics.jsonl") >= 3) as process:
        said = send(process, number)
    at = whole_up_to_its_checkpoint(place / "out")
    assert at >= 3
    assert f"stopped after step {at}; run the same command to resume from there" in said


@pytest.mark.nightly
def test_each_step_is_on_the_disk_and_cut_back_where_a_run_goes_on(place: Path) -> None:
    """kill -9, and half a line besides: what the next process does again is there once."""
    words = [*KINDS["grpo"], "--model=model", "--output_dir=out", *FAST, "++batch_size=2", "++save_every=4"]
    out = place / "out"
    with begun(place, *words, "++steps=60", until=lambda: lines(out / "metrics.jsonl") >= 7) as process:
        process.kill()
    done = lines(out / "metrics.jsonl")
    assert done >= 7
    assert lines(out / "samples.jsonl") >= 2 * done
    for name in ("metrics.jsonl", "samples.jsonl", "checkpoints.jsonl"):
        with (out / name).open("ab") as file:
            file.write(b'{"step": 99, "rew')
    again = forkserver.ns([*words, "++steps=60"], cwd=place)
    assert again.returncode == 0, again.stderr
    assert [row["step"] for row in read_rows(out / "metrics.jsonl")] == list(range(1, 61))
    steps = [row["step"] for row in read_rows(out / "samples.jsonl")]
    assert steps == sorted(2 * list(range(1, 61)))


@pytest.mark.nightly
def test_a_killed_dpo_reaches_the_numbers_of_one_that_was_not(place: Path) -> None:
    """kill -9 between checkpoints, with half a line in each file: the pairs' reference is not asked again."""
    rows = [{"prompt": f"AB{n}", "chosen": f"{n}BA<|end|>", "rejected": f"B{n}<|end|>"} for n in range(8)]
    write_rows(place / "pairs.jsonl", rows)
    words = ["dpo", "--training_data=pairs.jsonl", "--model=model", *FAST, "++batch_size=2", "++save_every=4"]
    out = place / "out"
    with begun(
        place, *words, "--output_dir=out", "++steps=40", until=lambda: lines(out / "metrics.jsonl") >= 7
    ) as process:
        process.kill()
    for name in ("metrics.jsonl", "reference.jsonl", "checkpoints.jsonl"):
        with (out / name).open("ab") as file:
            file.write(b'{"pair": 99, "cho')
    for folder in ("out", "whole"):
        done = forkserver.ns([*words, f"--output_dir={folder}", "++steps=40"], cwd=place)
        assert done.returncode == 0, done.stderr
    for name in ("metrics.jsonl", "reference.jsonl"):
        ours, whole = (
            [{**row, "seconds": 0} for row in read_rows(place / folder / name)] for folder in ("out", "whole")
        )
        assert ours == whole
    assert len(list(read_rows(out / "reference.jsonl"))) == len(rows)


def test_there_is_life_before_the_first_step(place: Path) -> None:
    words = [*KINDS["sft"], "--model=model", "--output_dir=out", *FAST, "++steps=2"]
    done = forkserver.ns(words, cwd=place)
    assert done.returncode == 0, done.stderr
    shown = [line for line in done.stderr.splitlines() if line.startswith("SFT")]
    assert shown[0] == "SFT: loading the model"
    assert shown[1] == "SFT 0/2 · step 1 has started"
    assert shown[-1].startswith("SFT 2/2 · loss ")


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_recipe_stops_with_its_training(tmp_path: Path, number: int) -> None:
    laid_out(tmp_path)
    out = tmp_path / "out"
    words = [*FULL, "--report-to=none", "++cot.epochs=1000", "++cot.save_steps=100000"]
    with begun(tmp_path, *words, until=lambda: lines(out / "sft_cot/metrics.jsonl") >= 2) as process:
        said = send(process, number)
    at = whole_up_to_its_checkpoint(out / "sft_cot")
    assert f"stopped after step {at}" in said
    assert not (out / "sft_tir").exists()


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.local_model
@pytest.mark.timeout(1800)
def test_the_quickstart_stops_with_a_checkpoint_and_goes_on(small_model: Path, tmp_path: Path) -> None:
    words = ["quickstart", "--output_dir=out", "--share=0.2", f"--model={small_model}", "--data_dir=data"]
    folder, done = tmp_path / "out/rounds/sft/training", 0
    for number in (signal.SIGINT, signal.SIGTERM):
        wanted = done + 2
        with begun(
            tmp_path, *words, until=lambda wanted=wanted: lines(folder / "metrics.jsonl") >= wanted
        ) as process:
            said = send(process, number)
        done = whole_up_to_its_checkpoint(folder)
        assert done >= wanted
        assert f"SFT, sft: stopped after step {done}; run the same command to resume from there." in said
    assert not (tmp_path / "out/models/sft").exists()
