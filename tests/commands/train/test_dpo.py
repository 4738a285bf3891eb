# SPDX-License-Identifier: Apache-2.0
"""`ns dpo` from files of pairs and from graded outputs, and what it says of input that it cannot use."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests import forkserver
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.records import Row
from newskills.base.store import read_rows, write_rows
from newskills.run.training.preferences import displacement_warning

FAST = ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4", "++learning_rate=0.02"]
TEXTS = [{"prompt": f"AB{n}", "chosen": f"{n}BA<|end|>", "rejected": f"B{n}<|end|>"} for n in range(8)]


def turn(role: str, text: str) -> Row:
    return {"role": role, "content": text}


CHATS = [
    {
        "prompt": [turn("user", f"AB{n}")],
        "chosen": [turn("assistant", f"{n}BA")],
        "rejected": [turn("assistant", f"B{n}")],
    }
    for n in range(8)
]
WHOLE = [
    {
        "chosen": [turn("user", f"AB{n}"), turn("assistant", f"{n}BA")],
        "rejected": [turn("user", f"AB{n}"), turn("assistant", f"B{n}")],
    }
    for n in range(8)
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    return tmp_path


def dpo(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return forkserver.ns(["dpo", "--model=model", "--output_dir=out", *words], cwd=place)


@pytest.mark.parametrize("rows", [TEXTS, CHATS, WHOLE], ids=["texts", "conversations", "whole conversations"])
def test_pairs_of_every_form_make_a_model_that_prefers_the_chosen(place: Path, rows: list[Row]) -> None:
    write_rows(place / "pairs.jsonl", rows)
    words = ["--training_data=pairs.jsonl", *FAST, "++batch_size=4", "++epochs=4"]
    done = dpo(place, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "out/final_hf_model"
    margins = [row["rewards/margins"] for row in read_rows(place / "out/metrics.jsonl")]
    assert len(margins) == 8
    assert margins[0] == pytest.approx(0, abs=1e-5)
    assert margins[-1] > 0.05
    before, after = (load_file(place / name / "model.safetensors") for name in ("model", "out/final_hf_model"))
    assert any(not value.equal(after[name]) for name, value in before.items())
    write_rows(place / "pairs.jsonl", rows[::-1])
    changed = dpo(place, *words)
    assert changed.returncode == 2
    assert "other settings: pairs" in changed.stderr


def graded(problem: int, seed: int, outcome: str, **more: Any) -> Row:
    text = f"{problem}{'AB'[outcome == 'correct'] * (seed + 1)}"
    row = {"id": f"p{problem}", "question": f"AB{problem}", "generation": text, "finish_reason": "stop"}
    return row | {"outcome": outcome, "symbolic_correct": outcome == "correct"} | more


OUTCOMES = {
    0: ("correct", "wrong", "wrong"),
    1: ("correct", "correct", "correct"),
    2: ("wrong", "no_answer", "wrong"),
    3: ("correct", "unscored", "no_answer"),
    4: ("wrong", "unscored", "correct"),
}


def write_outputs(place: Path) -> None:
    for seed in range(3):
        rows = [graded(problem, seed, outcomes[seed]) for problem, outcomes in OUTCOMES.items()]
        if seed == 1:
            rows[0]["finish_reason"] = "length"
        write_rows(place / f"output-rs{seed}.jsonl", rows)


def test_correct_replies_are_paired_with_wrong_ones_to_the_same_problem(place: Path) -> None:
    write_outputs(place)
    words = ["--input_files", "output-rs*.jsonl", "++prompt_config=generic/default", *FAST, "++steps=2"]
    done = dpo(place, *words, "++batch_size=2")
    assert done.returncode == 0, done.stderr
    assert (
        "out/pairs.jsonl: 4 pairs of 3 of 5 problems (left out: 1 with only correct replies, 1 with only wrong "
        "replies); replies ignored: 2 without a verdict"
    ) in done.stdout
    pairs = list(read_rows(place / "out/pairs.jsonl"))
    replies = {(row["prompt"], row["chosen"], row["rejected"]) for row in pairs}
    end = "<|end|>"
    assert replies == {
        ("<user>AB0", f"0B{end}", "0AA"),  # cut off: no token ends it
        ("<user>AB0", f"0B{end}", f"0AAA{end}"),
        ("<user>AB3", f"3B{end}", f"3AAA{end}"),
        ("<user>AB4", f"4BBB{end}", f"4A{end}"),
    }
    again = dpo(
        place, "--training_data=out/pairs.jsonl", "--output_dir=again", *FAST, "++steps=2", "++batch_size=2"
    )
    assert again.returncode == 0, again.stderr

    def numbers(folder: str) -> list[Row]:
        return [row | {"seconds": 0} for row in read_rows(place / folder / "metrics.jsonl")]

    assert numbers("again") == numbers("out")
    fewer = dpo(place, *words, "--output_dir=fewer", "++pairs_per_problem=1", "++drop_cut_off=true")
    assert "3 pairs of 3 of 5 problems" in fewer.stdout
    assert "; replies ignored: 2 without a verdict, 1 truncated" in fewer.stdout


def test_chosen_replies_that_became_less_likely_are_told(tmp_path: Path) -> None:
    rows = [{"step": step, "rewards/chosen": value} for step, value in enumerate((9.0, *[-0.2] * 9, -0.7), 1)]
    write_rows(tmp_path / "metrics.jsonl", rows)
    assert "rewards/chosen -0.25 in the last 10 steps" in displacement_warning(tmp_path / "metrics.jsonl")
    write_rows(tmp_path / "metrics.jsonl", [*rows, {"step": 12, "rewards/chosen": 9.0}])
    assert displacement_warning(tmp_path / "metrics.jsonl") == ""


def test_dry_run_reads_no_model(place: Path) -> None:
    write_rows(place / "pairs.jsonl", TEXTS)
    done = dpo(place, "--model=nowhere", "--training_data=pairs.jsonl", "--dry_run")
    assert done.returncode == 0, done.stderr
    assert "pairs.jsonl" in done.stdout
    assert not (place / "out").exists()


BAD = [
    ([], None, "give one of them"),
    (["--training_data=none.jsonl"], None, "There is no file none.jsonl"),
    (["--input_files=pairs.jsonl"], [graded(0, 0, "wrong")], "Give --benchmark=NAME, or ++prompt_config=NAME"),
    (["--training_data=pairs.jsonl"], [], "has no rows"),
    (["--training_data=pairs.jsonl"], [{"prompt": "A", "chosen": "B"}], "no `chosen` and `rejected`"),
    (["--training_data=pairs.jsonl"], [TEXTS[0] | {"rejected": ""}], "texts that are not empty"),
    (["--training_data=pairs.jsonl"], [CHATS[0] | {"chosen": [turn("user", "A")]}], "one turn of the assistant"),
    (
        ["--training_data=pairs.jsonl"],
        [{"chosen": WHOLE[0]["chosen"], "rejected": WHOLE[1]["rejected"]}],
        "differ before the last turn",
    ),
    (["--training_data=pairs.jsonl"], [TEXTS[0] | {"chosen": "AB" * 400}], "pairs are longer than the limit"),
    (
        ["--input_files=pairs.jsonl", "++prompt_config=generic/default"],
        [graded(0, 0, "wrong"), graded(1, 0, "correct")],
        "Draw more replies: ns eval",
    ),
    (
        ["--input_files=pairs.jsonl", "++prompt_config=generic/default"],
        [graded(0, 0, "wrong", reasoning_content="because"), graded(0, 1, "correct")],
        "reasoning_content",
    ),
    (["--training_data=pairs.jsonl", "++beta=0"], TEXTS, "beta"),
]


@pytest.mark.parametrize(("words", "rows", "sentence"), BAD)
def test_bad_input_is_told_in_a_sentence(
    place: Path, words: list[str], rows: list[Row] | None, sentence: str
) -> None:
    if rows is not None:
        write_rows(place / "pairs.jsonl", rows)
    done = dpo(place, *words, *FAST)
    assert done.returncode in (1, 2), done.stdout
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
def test_pairs_that_are_too_long_can_be_left_out(place: Path) -> None:
    write_rows(place / "pairs.jsonl", [*TEXTS, TEXTS[0] | {"chosen": "AB" * 400}])
    done = dpo(place, "--training_data=pairs.jsonl", *FAST, "++steps=1", "++too_long=drop")
    assert done.returncode == 0, done.stderr
    assert "1 of 9 pairs are longer than the limit of 256 tokens; they are left out" in done.stdout
