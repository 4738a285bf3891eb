# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on the hub while a training goes on, with the hub's own client and a double of its HTTP API."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard
from tests.commands.results.test_push import sent
from tests.exchange.hub_double import WRITER, HubDouble, hub_double
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import read_rows, write_rows

pytestmark = pytest.mark.slow
WORDS = ["--model=model", "--training_data=texts.jsonl", "--output_dir=out", "++batch_size=5", "++epochs=2"]
WORDS += ["++save_every=2", "++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4"]


@pytest.fixture
def hub() -> Iterator[HubDouble]:
    with hub_double() as double:
        yield double


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    write_rows(tmp_path / "texts.jsonl", [{"input": f"AB{n}", "output": f"{n}BA<|end|>"} for n in range(10)])
    return tmp_path


def train(place: Path, hub: HubDouble, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return sent(["-m", "newskills", "sft", *WORDS, *words], hub, place, **{"HF_HUB_OFFLINE": "0", **more})


@pytest.mark.parametrize("backend", ["cpu", pytest.param("trl", marks=pytest.mark.nightly)])
def test_checkpoints_are_commits_of_a_private_repository(place: Path, hub: HubDouble, backend: str) -> None:
    done = train(place, hub, "--push_to=hf://me/tuned", f"--backend={backend}")
    assert done.returncode == 0, done.stderr
    repo = hub.repos["models/me/tuned"]
    assert repo["private"] is True
    assert hub.messages[-1] == "checkpoint-000004"
    # The first may still have waited when the second came.
    assert set(hub.messages) <= {"checkpoint-000002", "checkpoint-000004"}
    assert "checkpoint-000004 is at http" in done.stderr
    last = place / "out/checkpoint-000004"
    files = repo["files"]
    assert files["adapter_model.safetensors"] == (last / "adapter_model.safetensors").read_bytes()
    assert not [name for name in files if "optimizer" in name or "state" in name or name.endswith(".pt")]
    assert ModelCard(files["README.md"].decode()).data.to_dict()["library_name"] == "peft"


def test_a_hub_that_fails_ends_no_training(place: Path, hub: HubDouble) -> None:
    hub.failing = 403
    done = train(place, hub, "--push_to=hf://me/tuned")
    assert done.returncode == 0, done.stderr
    assert "checkpoint-000004 was not sent: The hub refuses to write to me/tuned" in done.stderr
    assert [row["step"] for row in read_rows(place / "out/metrics.jsonl")] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("place_of", "variables", "sentence"),
    [
        ("hf://datasets/me/rows", {}, "--push_to: 'hf://datasets/me/rows' is a data set"),
        ("me/tuned", {}, "--push_to: 'me/tuned' is not a place on the hub"),
        ("hf://me/tuned", {"HF_TOKEN": ""}, "--push_to needs a token"),
        ("hf://me/tuned", {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set"),
    ],
)
def test_what_cannot_be_sent_is_said_before_the_first_step(
    place: Path, hub: HubDouble, place_of: str, variables: dict[str, str], sentence: str
) -> None:
    done = train(place, hub, f"--push_to={place_of}", token=WRITER, **variables)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert not (place / "out/metrics.jsonl").exists()
