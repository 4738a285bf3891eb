# SPDX-License-Identifier: Apache-2.0
"""What no training can make good is told in a sentence before the first step, and no model is written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests import forkserver
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import write_rows
from newskills_tinker.server.engine import BaseModel
from newskills_tinker.server.serving import all_names

DOWN = "model.layers.1.mlp.down_proj.weight"
FAST = ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4", "++steps=1", "++batch_size=2"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    write_rows(tmp_path / "texts.jsonl", [{"input": f"AB{n}", "output": f"{n}BA"} for n in range(4)])
    write_rows(tmp_path / "pairs.jsonl", [{"prompt": "A", "chosen": "B", "rejected": "B"}])
    write_rows(tmp_path / "problems.jsonl", [{"question": f"AB{n}", "expected_answer": "A"} for n in range(4)])
    return tmp_path


def with_weight(folder: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors[DOWN] = change(tensors[DOWN])
    save_file(tensors, folder / "model.safetensors")


def refused(place: Path, *words: str) -> str:
    done = forkserver.ns([*words, "--model=model", "--output_dir=out", *FAST], cwd=place)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "out/final_hf_model").exists()
    assert not list((place / "out").glob("checkpoint-*"))
    return done.stderr


def nan_at_one_place(tensor: torch.Tensor) -> torch.Tensor:
    tensor[3, 5] = torch.nan
    return tensor


@pytest.mark.parametrize("backend", ["cpu", "trl"])
def test_weights_that_are_no_numbers_are_the_model_s_fault(place: Path, backend: str) -> None:
    if backend == "trl":
        pytest.importorskip("trl")
    with_weight(place / "model", nan_at_one_place)
    said = refused(place, "sft", "--training_data=texts.jsonl", f"--backend={backend}")
    assert "contain numbers that are not finite, before any training (first of 1 tensors" in said
    assert "mlp.down_proj.weight" in said


@pytest.mark.parametrize("backend", ["cpu", "trl"])
def test_weights_in_8_bits_are_not_trained(place: Path, backend: str) -> None:
    with_weight(place / "model", lambda tensor: (tensor * 50).to(torch.int8))
    said = refused(place, "sft", "--training_data=texts.jsonl", f"--backend={backend}")
    assert f"holds {DOWN} as I8: quantised weights cannot be trained" in said


@pytest.mark.parametrize(
    "words",
    [
        ["sft", "--training_data=texts.jsonl"],
        ["grpo", "--training_data=problems.jsonl", "++prompt_config=generic/default", "++max_tokens=2"],
    ],
    ids=["sft", "grpo"],
)
def test_a_tokenizer_with_more_tokens_than_the_model(place: Path, words: list[str]) -> None:
    path = place / "model/tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["vocab"]["B"] = VOCAB + 3
    tokenizer["model"]["merges"] = []
    path.write_text(json.dumps(tokenizer))
    said = refused(place, *words)
    assert f"none of the {VOCAB} of the model's embedding" in " ".join(said.split())


GEMMA = {"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text"}
"""As google/gemma-3-270m says it."""


def test_a_model_that_the_embedded_trainer_does_not_know(place: Path) -> None:
    path = place / "model/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **GEMMA}))
    for words in (
        ["sft", "--training_data=texts.jsonl"],
        ["grpo", "--training_data=problems.jsonl", "++prompt_config=generic/default", "++max_tokens=2"],
    ):
        said = " ".join(refused(place, *words).split())
        shutil.rmtree(place / "out", ignore_errors=True)
        assert "its architecture is Gemma3ForCausalLM" in said
        assert (
            "It knows LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM; use --backend=trl for others." in said
        )
    served = forkserver.ns(["serve_tinker", "--model=model", "--output_dir=states", "--port=0"], cwd=place)
    assert served.returncode == 2
    assert "It knows LlamaForCausalLM" in " ".join(served.stderr.split())
    words = ["--input_model=model", "--output_model=m.gguf", "--convert_from=hf", "--convert_to=gguf"]
    converted = forkserver.ns(["convert", *words], cwd=place)
    assert converted.returncode == 2
    assert "Gemma3ForCausalLM" in converted.stderr
    assert "Llama" in converted.stderr.replace("Gemma3ForCausalLM", "")


@pytest.mark.parametrize("command", ["sft", "dpo", "kto", "grpo", "reward_model"])
def test_a_learning_rate_that_no_weights_survive(place: Path, command: str) -> None:
    said = refused(place, command, "--training_data=texts.jsonl", "++learning_rate=1e30")
    assert "learning_rate" in said
    assert "1" in said


def test_pairs_of_the_same_reply(place: Path) -> None:
    said = refused(place, "dpo", "--training_data=pairs.jsonl")
    assert "pairs.jsonl, row 1: `chosen` and `rejected` are the same" in said


def test_a_served_model_is_known_by_its_absolute_path(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "work").mkdir()
    (place / "link").symlink_to(place / "model")
    monkeypatch.chdir(place / "work")
    folder = Path("../link")
    names = all_names({"../link": BaseModel("../link", folder)})
    assert {"../link", "link", str(place / "link"), str(place / "model")} <= names.keys()
