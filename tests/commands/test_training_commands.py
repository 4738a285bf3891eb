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


def test_trl_is_another_backend(place):
    pytest.importorskip("trl")
    write_rows(place / "held.jsonl", [{"question": "AB", "expected_answer": "A"}])
    words = ["grpo", "--backend=trl", "--model=model", "--training_data=problems.jsonl", "--output_dir=out"]
    words += ["++eval_type=exact", "--eval_data=held.jsonl", "++eval.every=1", "++eval.max_tokens=2", *FAST]
    small = ["++steps=2", "++batch_size=2", "++group_size=4", "++max_tokens=2", "++report_to=[tensorboard]"]
    done = ns(place, *words, *small)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "out/final_hf_model"
    assert "Traceback" not in done.stderr
    rows = list(read_rows(place / "out/metrics.jsonl"))
    assert [row["step"] for row in rows] == [1, 2]
    assert all(row["eval_unscored"] == 0 for row in rows)
    assert len(list(read_rows(place / "out/samples.jsonl"))) == 4
    assert (place / "out/final_hf_model/model.safetensors").is_file()
    assert list((place / "out/tensorboard").glob("events*"))
    assert not list((place / "out").glob("*.md"))
    again = ns(place, *words, *small[:-1], "++trainer.trl.sampler=vllm", "--output_dir=other")
    assert again.returncode == 2
    assert "needs a GPU" in again.stderr


def test_processes_that_train_together_write_one_record(place):
    pytest.importorskip("trl")
    words = [
        "--backend=trl",
        "--model=model",
        "--training_data=problems.jsonl",
        "--output_dir=out",
        "++eval_type=exact",
    ]
    words += ["++steps=2", "++batch_size=2", "++group_size=4", "++max_tokens=2", *FAST]
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", "-m", "newskills"]
    done = subprocess.run([*argv, "grpo", *words], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "out/final_hf_model"
    assert [row["step"] for row in read_rows(place / "out/metrics.jsonl")] == [1, 2]
    samples = list(read_rows(place / "out/samples.jsonl"))
    assert [len(row["responses"]) for row in samples] == [4] * 4


def test_sequences_that_do_not_fit(place):
    words = ["sft", "--model=model", "--training_data=texts.jsonl", "--output_dir=out", *FAST, "++batch_size=4"]
    write_rows(place / "texts.jsonl", [{"input": "AB", "output": "C" * n} for n in (1, 2, 40, 50, 3, 4)])
    done = ns(place, *words, "++max_length=20")
    assert done.returncode == 2
    assert "2 of 6 sequences are longer than the 20 tokens that fit (longest: 51)" in done.stderr
    assert "++too_long=drop" in done.stderr
    done = ns(place, *words, "++max_length=20", "++too_long=truncate", "++steps=1")
    assert done.returncode == 0, done.stderr
    assert "0 left out, 2 cut off" in done.stdout


def test_a_run_ends_before_its_time_is_over(place):
    words = ["sft", "--model=model", "--training_data=chats.jsonl", "--output_dir=out", *FAST, "++steps=40000"]
    done = ns(place, *words, "++checkpoint_must_save_by=00:00:00:02")
    assert done.returncode == 130, done.stderr
    at = list(read_rows(place / "out/checkpoints.jsonl"))[-1]["step"]
    assert [row["step"] for row in read_rows(place / "out/metrics.jsonl")] == list(range(1, at + 1))
    assert "no dd:hh:mm:ss" in ns(place, *words, "++checkpoint_must_save_by=5").stderr


def test_problems_with_wrong_answers_are_left_out(place):
    write_rows(
        place / "problems.jsonl", [{"id": f"p{n}", "question": "AB", "expected_answer": "A"} for n in range(9)]
    )
    (place / "wrong.txt").write_text("p1\np2\n")
    words = ["grpo", "--model=model", "--training_data=problems.jsonl", "--output_dir=out", "--dry_run", *FAST]
    assert "7 problems" in ns(place, *words, "++masked=wrong.txt", "++eval_type=exact").stdout
    (place / "wrong.txt").write_text("x1")
    assert "No problem has an id" in ns(place, *words, "++masked=wrong.txt", "++eval_type=exact").stderr


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


def test_a_model_without_chat_template_learns_texts_only(place):
    (place / "model/chat_template.jinja").unlink()
    words = ["sft", "--model=model", "--output_dir=out", "++steps=1", "++batch_size=2", *FAST]
    done = ns(place, *words, "--training_data=chats.jsonl")
    assert done.returncode == 2
    assert "has no chat template" in done.stderr
    done = ns(place, *words, "--training_data=texts.jsonl")
    assert done.returncode == 0, done.stderr


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
