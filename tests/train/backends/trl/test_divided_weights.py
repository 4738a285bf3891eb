# SPDX-License-Identifier: Apache-2.0
"""FSDP and DeepSpeed on two processes: what one process computes, divided. Real torch, accelerate and DeepSpeed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.train.backends.trl.test_launching import told
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from newskills.base.store import read_rows, write_rows
from newskills.train.backends.trl.launching import NodePlace, accelerate_config
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.memory import Split

pytest.importorskip("trl")
pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]

WORDS = [
    "--backend=trl",
    "--model=model",
    "++trainer.dtype=float32",
    "++trainer.lora.rank=4",
    "++trainer.threads=1",
]
MEASURED = ["--eval_data=held.jsonl", "++eval.every=1", "++eval.max_tokens=4", "++eval.final=last"]
SFT = ["sft", "--training_data=texts.jsonl", "++batch_size=4", "++learning_rate=0.01", "++save_every=1", *WORDS]
GRPO = ["grpo", "--training_data=problems.jsonl", "++eval_type=exact", "++batch_size=2", "++group_size=4", *WORDS]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    write_rows(tmp_path / "texts.jsonl", [{"input": f"AB{n}", "output": f"{n}BA<|end|>"} for n in range(10)])
    for name, asked in (("problems", "AB"), ("held", "BA")):
        write_rows(
            tmp_path / f"{name}.jsonl", [{"question": f"{asked}{n}", "expected_answer": "A"} for n in range(9)]
        )
    return tmp_path


def told_to_divide(folder: Path, split: Split = "fsdp") -> dict[str, str]:
    """What accelerate launch tells the processes that it starts with our file."""
    _, env = told(accelerate_config(TrlSettings(processes=2, split=split), NodePlace()), folder)
    return {name: value for name, value in env.items() if name.startswith(("ACCELERATE_", "FSDP_"))}


def divided(place: Path, *words: str, split: Split = "fsdp", **variables: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    argv += ["-m", "tests.train.backends.trl.divided_cpu" if split == "fsdp" else "newskills"]
    argv += [*words, f"++trainer.trl.split={split}"]
    env = {**os.environ, **told_to_divide(place, split), "PYTHONPATH": str(Path(__file__).parents[4]), **variables}
    return subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, check=False)


def whole(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "newskills", *words]
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, check=False)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return list(read_rows(folder / "metrics.jsonl"))


def same(place: Path, names: Sequence[str]) -> None:
    """Metrics and weights of the run on two processes are those of the run on one."""
    one, two = (rows_of(place / folder) for folder in ("one", "two"))
    assert [row["step"] for row in one] == [row["step"] for row in two]
    for row, other in zip(one, two, strict=True):
        for name in names:
            assert (name in row) == (name in other)
            if name in row:
                assert other[name] == pytest.approx(row[name], rel=1e-4, abs=1e-6), (row["step"], name)
    weights, others = (load_file(place / name / "final_hf_model/model.safetensors") for name in ("one", "two"))
    assert weights.keys() == others.keys()
    for name, value in weights.items():
        assert others[name].shape == value.shape
        assert others[name].allclose(value, atol=2e-5), name


def was_divided(folder: Path) -> None:
    """A checkpoint has the file that accelerate gathers from all processes."""
    assert list(folder.rglob("pytorch_model_fsdp.bin"))


def test_one_process_of_a_node_reads_the_model(tmp_path: Path) -> None:
    """256 MB of weights, of which the other process takes nothing."""
    sizes = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 14, "vocab_size": 8192}
    config = LlamaConfig(**sizes, num_attention_heads=8, num_key_value_heads=8)
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    weights = 4 * sum(value.numel() for value in model.parameters())
    model.save_pretrained(tmp_path / "model")
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    argv += ["-m", "tests.train.backends.trl.loading_cpu", str(tmp_path / "model"), str(tmp_path)]
    root = Path(__file__).parents[4]
    env = {**os.environ, **told_to_divide(tmp_path), "PYTHONPATH": f"{root / 'src'}:{root}"}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, other = (int((tmp_path / rank).read_text()) for rank in ("0", "1"))
    assert first > 0.9 * weights
    assert other < 0.25 * weights


@pytest.mark.parametrize("weights", ["full", "lora"])
def test_fine_tuning_is_that_of_one_process(place: Path, weights: str) -> None:
    words = [*SFT, f"++trainer.weights={weights}", "++steps=3"]
    done = whole(place, *words, "--output_dir=one")
    assert done.returncode == 0, done.stderr
    stopped = divided(place, *words, "--output_dir=two", "++checkpoint_must_save_by=00:00:00:00")
    assert stopped.returncode != 0
    assert [row["step"] for row in rows_of(place / "two")] == [1], stopped.stderr
    whole_again = whole(place, *words, "--output_dir=two")
    assert whole_again.returncode == 2
    assert "other settings: trainer" in whole_again.stderr
    resumed = divided(place, *words, "--output_dir=two")
    assert resumed.returncode == 0, resumed.stderr
    same(place, ["loss", "grad_norm", "tokens"])
    was_divided(place / "two")


@pytest.mark.parametrize(
    ("split", "weights"), [("zero1", "lora"), ("zero2", "full"), ("zero3", "full"), ("zero3", "lora")]
)
def test_deepspeed_has_the_numbers_of_one_process(
    place: Path, monkeypatch: pytest.MonkeyPatch, split: Split, weights: str
) -> None:
    pytest.importorskip("deepspeed")
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    words = [*SFT, f"++trainer.weights={weights}", "++steps=3"]
    done = whole(place, *words, "--output_dir=one")
    assert done.returncode == 0, done.stderr
    done = divided(place, *words, "--output_dir=two", split=split)
    assert done.returncode == 0, done.stderr
    same(place, ["loss", "grad_norm", "tokens"])


def test_reinforcement_samples_measures_and_writes_the_model(place: Path) -> None:
    words = [*GRPO, "++steps=2", "++max_tokens=4", "++kl=0.01", "++trainer.weights=full", *MEASURED]
    done = divided(place, *words, "--output_dir=two")
    assert done.returncode == 0, done.stderr
    rows = rows_of(place / "two")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert all("eval_reward" in row for row in rows)
    assert [len(row["responses"]) for row in read_rows(place / "two/samples.jsonl")] == [4] * 4
    before, after = (load_file(place / name / "model.safetensors") for name in ("model", "two/final_hf_model"))
    assert {name: value.shape for name, value in before.items()} == {
        name: value.shape for name, value in after.items()
    }
    was_divided(place / "two")


def test_reinforcement_samples_and_measures_with_weights_in_parts(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deepspeed")
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    words = [*GRPO, "++steps=2", "++max_tokens=4", "++trainer.weights=full", *MEASURED]
    done = divided(place, *words, "--output_dir=two", split="zero3")
    assert done.returncode == 0, done.stderr
    assert [("eval_reward" in row, row["step"]) for row in rows_of(place / "two")] == [(True, n) for n in range(3)]
    before, after = (load_file(place / name / "model.safetensors") for name in ("model", "two/final_hf_model"))
    assert {name: value.shape for name, value in before.items()} == {
        name: value.shape for name, value in after.items()
    }


def test_what_cannot_be_divided_is_refused(place: Path) -> None:
    for words, variables, sentence in (
        ((), {"FSDP_VERSION": "1"}, "FSDP with FSDP_VERSION=1; the trl trainer needs 2"),
        ((), {"FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT"}, "the trl trainer needs FULL_STATE_DICT"),
        (("++trainer.trl.sampler=paged",), {}, "needs all weights in each process"),
        ((), {"ACCELERATE_USE_FSDP": "false"}, "++trainer.trl.split=fsdp divides nothing"),
    ):
        done = divided(place, *GRPO, "++steps=1", "++max_tokens=2", "--output_dir=out", *words, **variables)
        assert done.returncode != 0
        assert sentence in done.stderr
        assert not list((place / "out").rglob("*.safetensors"))


PAIRS = [{"prompt": f"AB{n}", "chosen": f"{n}BA<|end|>", "rejected": f"B{n}<|end|>"} for n in range(8)]


@pytest.mark.parametrize(
    ("command", "rows", "weights", "names"),
    [
        ("dpo", PAIRS, "full", ["loss", "grad_norm", "rewards/margins"]),
        ("dpo", PAIRS, "lora", ["loss", "grad_norm", "rewards/margins"]),
        ("reward_model", PAIRS, "lora", ["loss", "grad_norm", "accuracy"]),
    ],
)
def test_preferences_are_learnt_as_in_one_process(
    place: Path, command: str, rows: list[dict[str, Any]], weights: str, names: list[str]
) -> None:
    write_rows(place / "data.jsonl", rows)
    words = [command, "--training_data=data.jsonl", "++batch_size=4", "++learning_rate=0.01", "++steps=2", *WORDS]
    words += [f"++trainer.weights={weights}"]
    for run, folder in ((whole, "one"), (divided, "two")):
        done = run(place, *words, f"--output_dir={folder}")
        assert done.returncode == 0, done.stderr
    same(place, names)
    was_divided(place / "two")
