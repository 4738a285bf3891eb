# SPDX-License-Identifier: Apache-2.0
"""`ns distill` with a real teacher on loopback: the student comes nearer to it; bad teachers are told in a sentence."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from statistics import fmean

import pytest
from tests import forkserver
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script
from tests.train.teaching import served, teacher_folder
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.records import Row
from newskills.base.store import read_rows, write_rows

FAST = ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=8", "++max_tokens=6"]
PROBLEMS = ["--training_data=problems.jsonl", "++prompt_config=generic/default"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    teacher_folder(tmp_path / "teacher", end=VOCAB - 1)
    write_rows(
        tmp_path / "problems.jsonl",
        [{"id": f"p{n}", "question": f"AB{n}", "expected_answer": "A"} for n in range(8)],
    )
    return tmp_path


def distill(place: Path, *words: str, student: str = "model") -> subprocess.CompletedProcess[str]:
    return forkserver.ns(["distill", f"--model={student}", "--output_dir=out", *words], cwd=place)


def metrics(folder: Path) -> list[Row]:
    return [{**row, "seconds": 0} for row in read_rows(folder / "metrics.jsonl")]


STEPS = ["++steps=20", "++batch_size=8", "++samples=8", "++learning_rate=0.02", "++save_every=7"]


def test_the_student_comes_nearer_to_a_teacher_here_and_to_the_same_one_at_an_endpoint(place: Path) -> None:
    here = distill(place, "--teacher=teacher", *PROBLEMS, *FAST, *STEPS)
    assert here.returncode == 0, here.stderr
    divergence = [row["kl"] for row in metrics(place / "out")]
    assert fmean(divergence[-5:]) < 0.8 * fmean(divergence[:2])
    with served(place / "teacher") as address:
        words = [*PROBLEMS, *FAST, *STEPS, "++steps=3", f"--teacher_address={address}", "--output_dir=far"]
        far = distill(place, "--teacher=teacher", *words)
        assert far.returncode == 0, far.stderr
    near = metrics(place / "out")
    for ours, theirs in zip(metrics(place / "far")[:1], near[:1], strict=True):
        assert ours["kl"] == pytest.approx(theirs["kl"], rel=1e-4)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=1e-3)


def test_a_server_without_echo_is_asked_for_prompt_logprobs(place: Path) -> None:
    with served(place / "teacher", "prompt_logprobs") as address:
        done = distill(place, "--teacher=teacher", f"--teacher_address={address}", *PROBLEMS, *FAST, "++steps=1")
    assert done.returncode == 0, done.stderr
    assert metrics(place / "out")[0]["kl"] > 0


def test_a_teacher_without_log_probabilities_of_the_prompt_is_refused(place: Path) -> None:
    with served(place / "teacher", "nothing") as address:
        done = distill(place, "--teacher=teacher", f"--teacher_address={address}", *PROBLEMS, *FAST)
    assert done.returncode not in (0, 130)
    told = " ".join(done.stderr.split())
    assert "The server of the teacher teacher returns no log-probabilities of the prompt" in told
    assert "--by=texts" in told
    assert not (place / "out/metrics.jsonl").exists()


def test_a_score_that_is_no_number_stops_the_training(place: Path) -> None:
    with served(place / "teacher", "nan") as address:
        done = distill(place, "--teacher=teacher", f"--teacher_address={address}", *PROBLEMS, *FAST, "++steps=1")
    assert done.returncode not in (0, 130)
    assert "not a number; training stopped" in " ".join(done.stderr.split())


def other_vocabulary(place: Path) -> Path:
    """The teacher with two characters of its vocabulary exchanged."""
    folder = teacher_folder(place / "stranger", end=VOCAB - 1)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    vocab["O"], vocab["T"] = vocab["T"], vocab["O"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


def test_a_teacher_with_another_tokenizer_is_refused(place: Path) -> None:
    stranger = other_vocabulary(place)
    here = distill(place, "--teacher=stranger", *PROBLEMS, *FAST)
    assert here.returncode not in (0, 130)
    assert "The tokenizer of the teacher stranger is not that of the student" in " ".join(here.stderr.split())
    with served(stranger) as address:
        far = distill(place, "--teacher=stranger", f"--teacher_address={address}", *PROBLEMS, *FAST)
    assert "splits text into other tokens than the student" in " ".join(far.stderr.split())


BAD = [
    (["--teacher=teacher"], "Give --benchmark, or --training_data"),
    (["--teacher=nowhere/else/there", *PROBLEMS], "There is no folder"),
    (["--teacher=teacher", "--backend=trl", *PROBLEMS], "does not support on-policy distillation"),
    (["--teacher=teacher", "++samples=0", *PROBLEMS], "samples"),
    (["--teacher=teacher", "--training_data=empty.jsonl", "++prompt_config=generic/default"], "has no problems"),
    (
        ["--teacher=teacher", "--by=texts", "--training_data=nameless.jsonl", "++prompt_config=generic/default"],
        "1 of 1 problems in nameless.jsonl have no `id`",
    ),
]


@pytest.mark.parametrize(("words", "sentence"), BAD)
def test_bad_input_is_told_in_a_sentence(place: Path, words: list[str], sentence: str) -> None:
    write_rows(place / "empty.jsonl", [])
    write_rows(place / "nameless.jsonl", [{"question": "AB", "expected_answer": "A"}])
    done = distill(place, *words, *(FAST if "--backend=trl" not in words else []))
    assert done.returncode in (1, 2), done.stdout
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_correct_answers_of_a_teacher_are_trained_on(place: Path, fake_server: FakeServerFactory) -> None:
    """Two of three answers are the expected one; the same answer twice counts once."""
    server = fake_server(Script(answer=Answer(kind="sequence", texts=("A", "B", "A"))))
    words = [f"--teacher_address={server.base_url}", "--teacher=fake-model", "--by=texts", "++eval_type=exact"]
    done = distill(place, *words, *PROBLEMS, *FAST, "++samples=3", "++epochs=6", "++learning_rate=0.01")
    assert done.returncode == 0, done.stderr
    rows = list(read_rows(place / "out/train.jsonl"))
    assert {row["output"] for row in rows} == {"A<|end|>"}
    assert {row["input"] for row in rows} <= {f"<user>AB{n}" for n in range(8)}
    asked = {record.body["messages"][-1]["content"] for record in server.records}
    assert asked == {f"AB{n}" for n in range(8)}  # by the student's prompt
    assert len({row["id"] for row in rows}) == len(rows)
    assert f"out/train.jsonl: {len(rows)} correct answers to 8 problems (left out: " in done.stdout
    losses = [row["loss"] for row in metrics(place / "out")]
    assert losses[-1] < losses[0]


@pytest.mark.nightly
def test_a_run_with_other_settings_is_not_resumed(place: Path) -> None:
    words = ["--teacher=teacher", *PROBLEMS, *FAST, "++steps=1"]
    assert distill(place, *words).returncode == 0
    again = distill(place, *words, "++samples=2")
    assert again.returncode == 2
    assert "other settings: samples" in again.stderr
