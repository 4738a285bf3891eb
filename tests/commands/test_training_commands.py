# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import read_rows, write_rows

FAST = ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4"]


@pytest.fixture
def place(tmp_path):
    with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    write_rows(
        tmp_path / "chats.jsonl",
        [
            {"messages": [{"role": "user", "content": f"AB{n}"}, {"role": "assistant", "content": f"{n}BA"}]}
            for n in range(10)
        ],
    )
    write_rows(tmp_path / "texts.jsonl", [{"input": f"AB{n}", "output": f"{n}BA<|end|>"} for n in range(10)])
    write_rows(tmp_path / "problems.jsonl", [{"question": f"AB{n}", "expected_answer": "A"} for n in range(10)])
    return tmp_path


def ns(place, *words):
    argv = [sys.executable, "-m", "newskills", *words]
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("data", ["chats", "texts"])
def test_sft_writes_a_model(place, data):
    words = ["sft", "--model=model", f"--training_data={data}.jsonl", "--output_dir=out", *FAST]
    done = ns(place, *words, "++batch_size=4", "++epochs=3", "++learning_rate=0.02")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "out/final_hf_model"
    losses = [row["loss"] for row in read_rows(place / "out/metrics.jsonl")]
    assert len(losses) == 6
    assert losses[-1] < losses[0]
    before, after = (load_file(place / name / "model.safetensors") for name in ("model", "out/final_hf_model"))
    assert before.keys() == after.keys()
    assert any(not value.equal(after[name]) for name, value in before.items())
    other = ns(place, *words, "++batch_size=4", "++epochs=3", "++learning_rate=0.03")
    assert other.returncode == 2
    assert "other settings: learning_rate" in other.stderr


def test_grpo_is_rewarded_by_the_grader(place):
    words = ["--model=model", "--training_data=problems.jsonl", "--output_dir=out", "++eval_type=exact", *FAST]
    small = ["++steps=2", "++batch_size=2", "++group_size=4", "++max_tokens=2"]
    done = ns(place, "grpo", *words, *small)
    assert done.returncode == 0, done.stderr
    samples = list(read_rows(place / "out/samples.jsonl"))
    assert len(samples) == 4
    for row in samples:
        for one in row["responses"]:
            assert one["reward"] == float(one["text"].strip().lower() == "a")
    assert (place / "out/final_hf_model/model.safetensors").is_file()


def test_a_stopped_training_goes_on(place):
    words = ["sft", "--model=model", "--training_data=chats.jsonl", "--output_dir=out", *FAST, "++steps=4000"]
    argv = [sys.executable, "-m", "newskills", *words]
    with subprocess.Popen(argv, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (place / "out/checkpoints.jsonl").is_file() or not (place / "out/checkpoints.jsonl").read_text():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGUSR1)
        said, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "the same command goes on" in said
    at = list(read_rows(place / "out/checkpoints.jsonl"))[-1]["step"]
    assert [row["step"] for row in read_rows(place / "out/metrics.jsonl")] == list(range(1, at + 1))
    assert not (place / "out/final_hf_model").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sft", "--model=model", "--training_data=problems.jsonl"], "its keys are expected_answer, question"),
        (["sft", "--model=model", "--training_data=empty.jsonl"], "nothing to train on"),
        (["sft", "--model=nowhere", "--training_data=chats.jsonl"], "Unknown model 'nowhere'"),
        (["sft", "--model=model", "--training_data=chats.jsonl", "++epoch=1"], "epochs"),
        (["grpo", "--model=model"], "name one of them"),
        (["grpo", "--model=model", "--training_data=problems.jsonl", "++eval_type=maths"], "math"),
        (["grpo", "--model=model", "--training_data=chats.jsonl"], "question"),
    ],
)
def test_bad_input_is_told_in_a_sentence(place, words, said):
    (place / "empty.jsonl").write_text("")
    done = ns(place, *words, "--output_dir=out", *FAST)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_models_change_their_form(place):
    pytest.importorskip("gguf")
    steps = [
        ["convert", "--input_model=model", "--output_model=a.gguf", "--convert_from=hf", "--convert_to=gguf"],
        ["convert", "--input_model=a.gguf", "--output_model=again", "--convert_from=gguf", "--convert_to=hf"],
        ["average_checkpoints", "--checkpoints", "again", "again", "--output_model=mean"],
    ]
    for words in steps:
        done = ns(place, *words)
        assert done.returncode == 0, done.stderr
    assert json.loads((place / "mean/config.json").read_text())["hidden_size"] == 32
    done = ns(place, *steps[0][:3], "--convert_from=hf", "--convert_to=hf")
    assert done.returncode == 2
    assert "nothing to convert" in done.stderr
