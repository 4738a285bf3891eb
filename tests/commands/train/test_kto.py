# SPDX-License-Identifier: Apache-2.0
"""`ns kto` from labelled replies and from graded outputs, and what it says of input that it cannot use."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests import forkserver
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.records import Row
from newskills.base.store import read_rows, write_rows

pytest.importorskip("trl")
pytestmark = pytest.mark.slow

FAST = ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4", "++learning_rate=0.02"]
REPLIES = [
    {"prompt": f"AB{n}", "completion": f"{n}{'AB'[good]}<|end|>", "label": bool(good)}
    for n in range(8)
    for good in (0, 1)
]
GRADED = [
    {
        "id": f"p{n}",
        "question": f"AB{n}",
        "generation": f"{n}{'AB'[good]}",
        "finish_reason": "stop",
        "outcome": ("wrong", "correct", "unscored")[good],
    }
    for n in range(4)
    for good in (0, 1, -1)
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    return tmp_path


def kto(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return forkserver.ns(["kto", "--model=model", "--output_dir=out", *FAST, *words], cwd=place)


@pytest.mark.nightly
def test_graded_outputs_become_labelled_replies_and_make_a_model(place: Path) -> None:
    write_rows(place / "output.jsonl", GRADED)
    words = ["--input_files=output.jsonl", "++prompt_config=generic/default", "++batch_size=8", "++epochs=2"]
    done = kto(place, *words)
    assert done.returncode == 0, done.stderr
    assert "replies: 4 good, 4 bad; replies ignored: 4 without a verdict" in done.stdout
    losses = [row["loss"] for row in read_rows(place / "out/metrics.jsonl")]
    assert losses[-1] < losses[0]
    assert (place / "out/final_hf_model/model.safetensors").is_file()


@pytest.mark.nightly
def test_the_cpu_trainer_has_kto_as_well(place: Path) -> None:
    write_rows(place / "data.jsonl", REPLIES)
    done = kto(place, "--training_data=data.jsonl", "--backend=cpu", "++batch_size=8", "++epochs=3")
    assert done.returncode == 0, done.stderr
    rows = list(read_rows(place / "out/metrics.jsonl"))
    assert rows[0]["loss"] == pytest.approx(0.5, abs=1e-4)
    assert rows[-1]["loss"] < 0.45
    assert (place / "out/final_hf_model/model.safetensors").is_file()


BAD: list[tuple[list[str], list[Row] | None, str]] = [
    ([], None, "give one of them"),
    (["--training_data=data.jsonl"], [], "has no rows"),
    (["--training_data=data.jsonl"], [REPLIES[0] | {"label": "yes"}], "true or false as the label"),
    (["--training_data=data.jsonl"], [REPLIES[0] | {"completion": ""}], "must be a text that is not empty"),
    (["--training_data=data.jsonl"], REPLIES[::2], "KTO needs good and bad ones"),
    (["--input_files=data.jsonl"], GRADED, "Give --benchmark=NAME, or ++prompt_config=NAME"),
]


@pytest.mark.parametrize(("words", "rows", "sentence"), BAD)
def test_bad_input_is_told_in_a_sentence(
    place: Path, words: list[str], rows: list[Row] | None, sentence: str
) -> None:
    if rows is not None:
        write_rows(place / "data.jsonl", rows)
    done = kto(place, *words)
    assert done.returncode in (1, 2), done.stdout
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
