# SPDX-License-Identifier: Apache-2.0
"""`ns reward_model` from pairs to a served model, and what it says of input that it cannot use."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tests import forkserver
from tests.commands.rewarding import rewards
from tests.train.tiny import VOCAB, WIDTH, tiny_folder, with_tokenizer

from newskills.base.records import Row
from newskills.base.store import read_rows, write_rows

FAST = ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4", "++learning_rate=0.01"]
WORDS = ("AB", "CD", "EF", "GH", "IJ")
PAIRS = [
    {"prompt": f"{word}{n}", "chosen": f"{n}{word}X<|end|>", "rejected": f"{n}{word}Y<|end|>"}
    for n in range(6)
    for word in WORDS
]
"""What ends with X is better, whatever is asked."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=64))
    write_rows(tmp_path / "pairs.jsonl", PAIRS)
    return tmp_path


def reward_model(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    options = ["--model=model", "--output_dir=out", "--training_data=pairs.jsonl"]
    given = {word.partition("=")[0] for word in words}
    kept = [option for option in options if option.partition("=")[0] not in given]
    return forkserver.ns(["reward_model", *kept, *FAST, *words], cwd=place)


def numbers(folder: Path, name: str) -> list[Row]:
    return [{**row, "seconds": 0} for row in read_rows(folder / name)]


@pytest.mark.nightly
def test_a_reward_model_ranks_held_out_replies_and_is_served(place: Path) -> None:
    done = reward_model(place, "++batch_size=6", "++epochs=12", "++eval_every=10", "++held_out=0.34")
    assert done.returncode == 0, done.stderr
    held_out = list(read_rows(place / "out/held_out.jsonl"))
    assert len(held_out) == 10
    assert "accuracy on held-out pairs: 100.0 % (95 % interval" in done.stdout
    assert "10 pairs of 10 problems, each problem counts once" in done.stdout
    rows = numbers(place / "out", "metrics.jsonl")
    assert rows[0]["loss"] > rows[-1]["loss"]
    assert rows[-1]["eval_accuracy"] == 1.0
    model = place / "out/final_hf_model"
    config = json.loads((model / "config.json").read_text())
    assert (config["architectures"], config["num_labels"]) == (["LlamaForSequenceClassification"], 1)
    assert load_file(model / "model.safetensors")["score.weight"].shape == (1, WIDTH)

    items = [
        {"prompt": row["prompt"], "generation": row[side].removesuffix("<|end|>")}
        for row in PAIRS
        for side in ("chosen", "rejected")
    ]
    with rewards(place, f"--reward_model={model}") as server:
        assert "reward model" in server.said
        status, answer, _ = server.call("/v1/rewards", {"items": items})
        assert status == 200
        values = answer["rewards"]
        assert all(better > worse for better, worse in zip(values[::2], values[1::2], strict=True))
        told = [value for row in held_out for value in (row["chosen"], row["rejected"])]
        for value in told:  # the server may compute in bfloat16
            assert min(abs(value - other) for other in values) < 0.05
        status, answer, _ = server.call("/v1/rewards", {"items": [{"generation": "X"}]})
        assert status == 400
        assert "neither `prompt`, `messages` nor `problem`" in answer["error"]
        long = {"prompt": "AB", "generation": "X" * 100}
        status, answer, _ = server.call("/v1/rewards", {"items": [long, {"problem": "AB", "generation": "X"}]})
        assert status == 200
        assert answer["rewards"][0] is None
        assert "64" in answer["items"][0]["why"]
        assert answer["rewards"][1] is not None
        batch = {"query": ["AB00ABX"], "prompts": ["AB0"], "labels": [None]}
        status, answer, _ = server.call("/get_reward", batch)
        assert status == 200
        assert len(answer["rewards"]) == 1
        assert server.stop() == 0


@pytest.mark.nightly
def test_a_stopped_run_goes_on_to_the_same_numbers_and_not_with_other_pairs(place: Path) -> None:
    words = ["++batch_size=4", "++steps=6", "++save_every=2"]
    whole = reward_model(place, *words, "--output_dir=whole")
    assert whole.returncode == 0, whole.stderr
    assert reward_model(place, *words).returncode == 0
    lines = (place / "out/checkpoints.jsonl").read_text().splitlines(keepends=True)
    (place / "out/checkpoints.jsonl").write_text("".join(lines[:1]))  # as if killed after the first checkpoint
    subprocess.run(["rm", "-r", str(place / "out/final_hf_model")], check=True)
    again = reward_model(place, *words)
    assert again.returncode == 0, again.stderr
    for name in ("metrics.jsonl", "held_out.jsonl"):
        assert numbers(place / "out", name) == numbers(place / "whole", name)
    write_rows(place / "pairs.jsonl", PAIRS[:-1])
    changed = reward_model(place, *words)
    assert changed.returncode == 2
    assert "other settings: pairs" in changed.stderr


BAD = [
    (["--input_files=pairs.jsonl"], "give one of them"),
    (["--training_data=none.jsonl"], "There is no file none.jsonl"),
    (["--training_data=empty.jsonl"], "has no rows"),
    (["--training_data=one.jsonl"], "cannot be split: a share of 0.2 holds out 0 of them"),
    (["--backend=tinker"], "The trainer tinker does not support reward models"),
    (["++held_out=1"], "held_out"),
    (["--model=stranger"], "tensor"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD)
def test_bad_input_is_told_in_a_sentence(place: Path, words: list[str], sentence: str) -> None:
    write_rows(place / "empty.jsonl", [])
    write_rows(place / "one.jsonl", PAIRS[:1])
    folder = with_tokenizer(tiny_folder(place / "stranger", eos_token_id=0))
    (folder / "config.json").write_text((folder / "config.json").read_text().replace("48", "56"))
    given = ["--training_data=pairs.jsonl", *words] if words[0].startswith("--input") else words
    done = reward_model(place, *given)
    assert done.returncode in (1, 2), done.stdout
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
def test_a_model_of_another_kind_is_not_served_as_a_reward_model(place: Path) -> None:
    for words, sentence in (
        ([f"--reward_model={place / 'model'}"], "is not a reward model"),
        (["--reward_model=nowhere"], "is not a model folder"),
        ([f"--reward_model={place / 'model'}", "--grader=math"], "both give the reward"),
    ):
        done = forkserver.ns(["serve_rewards", "--port=0", *words], cwd=place)
        assert done.returncode in (1, 2), done.stdout
        assert sentence in " ".join(done.stderr.split())
