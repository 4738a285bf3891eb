# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from safetensors.torch import load_file, save_file
from tests import forkserver
from tests.run.training.test_asking import OWN_TRAINER
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import read_rows, write_rows
from newskills.run.hosting.servers import free_port
from newskills.run.training.steps_shown import steps_shown
from newskills.train.loops.stepping import Progress

ANSWER = {"role": "assistant", "content": "A"}
ECHO = """
from newskills.base.benchmark import Benchmark
BENCHMARK = Benchmark(
    name="echo", category="reasoning", title="echo", prompt="generic/default", split="test", grader="exact",
    defaults={"user_message": "ASK: {problem} !"},
)
"""
FAST = ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
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


def ns(place: Path, *words: str) -> CompletedProcess[str]:
    return forkserver.ns(words, cwd=place)


@pytest.mark.parametrize("data", ["chats", "texts"])
def test_sft_writes_a_model(place: Path, data: str) -> None:
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
    first = next(iter(read_rows(place / "out/examples.jsonl")))
    assert first["pieces"][-1] == {"text": "0BA<|end|>", "learnt": True}
    other = ns(place, *words, "++batch_size=4", "++epochs=3", "++learning_rate=0.03")
    assert other.returncode == 2
    assert "other settings: learning_rate" in other.stderr


def test_a_dry_run_shows_three_rows_as_the_model_sees_them(place: Path) -> None:
    write_rows(place / "rows.jsonl", [{"input": f"AB{n}=", "output": f"{n}BA"} for n in range(5)])
    done = ns(place, "sft", "--model=model", "--training_data=rows.jsonl", "--output_dir=out", "--dry_run")
    assert done.returncode == 0, done.stderr
    assert "first of 5 rows (trained on: ⟦this⟧)" in done.stdout
    for number in range(3):
        assert f"AB{number}=⟦{number}BA<|end|>⟧\n" in done.stdout
    assert "AB3=" not in done.stdout
    assert "example 1: 7 tokens, 4 of them trained on" in done.stdout
    assert "3 texts had no end token: <|end|> was added" in done.stderr
    assert not (place / "out").exists()


def test_a_dry_run_of_a_file_shows_rows_without_converting_it(place: Path) -> None:
    pytest.importorskip("gguf")
    done = ns(
        place,
        "convert",
        *["--input_model=model", "--output_model=m.gguf", "--convert_from=hf", "--convert_to=gguf"],
    )
    assert done.returncode == 0, done.stderr
    done = ns(place, "sft", "--model=m.gguf", "--training_data=chats.jsonl", "--output_dir=out", "--dry_run")
    assert "⟦0BA<|end|>⟧" in done.stdout
    assert not (place / "out").exists()


def test_another_prompt_than_that_of_the_evaluation_is_told(place: Path) -> None:
    (place / "echo.py").write_text(ECHO)
    words = ["sft", "--model=model", "--training_data=rows.jsonl", *FAST, "++steps=1", "++batch_size=2"]
    words += ["--eval_benchmark=echo.py::BENCHMARK", "--data_dir=data", "++eval.max_tokens=4", "++eval.every=5"]
    problems = [{"problem": f"X{n}", "expected_answer": "A"} for n in range(4)]
    write_rows(place / "data/echo/test.jsonl", problems)
    told = "training prompts are not asked as --eval_benchmark=echo.py::BENCHMARK asks"
    for name, prompt, is_told in (("other", "AB{}", True), ("same", "ASK: AB{} !", False)):
        rows = [{"messages": [{"role": "user", "content": prompt.format(n)}, ANSWER]} for n in range(4)]
        write_rows(place / "rows.jsonl", rows)
        done = ns(place, *words, f"--output_dir={name}")
        assert done.returncode == 0, done.stderr
        assert (f"4 of 4 {told}" in done.stderr) is is_told, done.stderr


def test_grpo_is_rewarded_by_the_grader(place: Path) -> None:
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


def test_grpo_measures_its_signal_and_has_a_control(place: Path) -> None:
    words = [
        "grpo",
        "--model=model",
        "--training_data=problems.jsonl",
        "--output_dir=out",
        *FAST,
        "++batch_size=4",
    ]
    words += ["++prompt_config=generic/default", "++eval_type=multichoice", "++max_tokens=2", "++steps=7"]
    done = ns(place, *words, "++min_signal=0.9", "++max_groups=6", "++control=shuffled", "++group_size=4")
    assert done.returncode == 0, done.stderr
    rows = list(read_rows(place / "out/metrics.jsonl"))
    assert [row["spread"] * 4 for row in rows[:5]] == [row["groups_used"] for row in rows[:5]]
    again = ns(place, *words, "++group_size=4")
    assert again.returncode == 2
    assert "other settings: control, max_groups, min_signal" in again.stderr


@pytest.mark.nightly
def test_grpo_runs_the_code_of_samples_in_the_sandbox(place: Path, small_model: Path) -> None:
    write_rows(
        place / "sums.jsonl", [{"id": str(n), "question": f"{n} + 1?", "expected_answer": "A"} for n in range(4)]
    )
    words = ["--training_data=sums.jsonl", "--output_dir=out", "++code_tags=qwen", "++eval_type=exact"]
    small = ["++steps=1", "++batch_size=2", "++group_size=2", "++max_tokens=6", "++trainer.threads=1"]
    done = ns(place, "grpo", f"--model={small_model}", *words, *small)
    assert done.returncode == 0, done.stderr
    (row,) = read_rows(place / "out/metrics.jsonl")
    assert row["completion_tokens"] <= 6
    assert len(list(read_rows(place / "out/samples.jsonl"))) == 2
    (place / "own.py").write_text("def make(base, settings):\n    return object()\n")
    lacking = ns(place, "grpo", "--backend=own.py::make", "--model=model", *words, *small)
    assert lacking.returncode == 2
    assert "--backend=own.py::make is not a trainer: it lacks runs, run, finish." in lacking.stderr
    (place / "own.py").write_text(OWN_TRAINER)
    own = ns(place, "grpo", "--backend=own.py::make", "--model=model", *words, *small)
    assert own.returncode == 2
    assert "--backend=own.py::make samples one reply per problem" in own.stderr
    several = ns(
        place, "grpo", "--model=model", *words, *small, "++prompt_config=generic/math", "++code_executions=0"
    )
    assert several.returncode == 2
    assert "code_executions" in several.stderr


def test_grpo_measures_on_problems_that_it_keeps_apart(place: Path) -> None:
    write_rows(place / "many.jsonl", [{"question": f"AB{n}", "expected_answer": "A"} for n in range(200)])
    words = ["--model=model", "--training_data=many.jsonl", "--output_dir=out", "++eval_type=exact", *FAST]
    small = ["++steps=1", "++batch_size=2", "++group_size=2", "++max_tokens=2", "++eval.max_tokens=2"]
    done = ns(place, "grpo", *words, *small)
    assert done.returncode == 0, done.stderr
    assert "held-out problems: reward 0.000 after step 0, 0.000 after step 1" in done.stderr
    rows = list(read_rows(place / "out/metrics.jsonl"))
    assert [row["step"] for row in rows if "eval_correct" in row] == [0, 1]
    none = ns(place, "grpo", *[word.replace("=out", "=other") for word in words], *small, "++held_out=0")
    assert none.returncode == 0, none.stderr
    assert "held-out" not in none.stderr


@pytest.mark.nightly
def test_a_stopped_training_goes_on(place: Path) -> None:
    words = ["sft", "--model=model", "--training_data=chats.jsonl", "--output_dir=out", *FAST, "++steps=4000"]
    argv = [sys.executable, "-m", "newskills", *words]
    with subprocess.Popen(argv, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 300
        while not (place / "out/checkpoints.jsonl").is_file() or not (place / "out/checkpoints.jsonl").read_text():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGUSR1)
        said, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert "run the same command to resume" in said
    at = list(read_rows(place / "out/checkpoints.jsonl"))[-1]["step"]
    assert [row["step"] for row in read_rows(place / "out/metrics.jsonl")] == list(range(1, at + 1))
    assert not (place / "out/final_hf_model").exists()


def test_trl_is_another_backend(place: Path) -> None:
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
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert all(row["eval_unscored"] == 0 for row in rows)
    assert len(list(read_rows(place / "out/samples.jsonl"))) == 4
    assert (place / "out/final_hf_model/model.safetensors").is_file()
    assert list((place / "out/tensorboard").glob("events*"))
    assert not list((place / "out").glob("*.md"))
    again = ns(place, *words, *small[:-1], "++trainer.trl.sampler=vllm", "--output_dir=other")
    assert again.returncode == 2
    assert "needs a GPU" in again.stderr


@pytest.mark.nightly
@pytest.mark.slow
def test_processes_that_train_together_write_one_record(place: Path) -> None:
    pytest.importorskip("trl")
    words = [
        "--backend=trl",
        "--model=model",
        "--training_data=problems.jsonl",
        "--output_dir=out",
        "++eval_type=exact",
    ]
    words += ["++steps=2", "++batch_size=2", "++group_size=4", "++max_tokens=2", *FAST]
    words += ["++put_aside=1", "++resample=1", "++trainer.trl.processes=2"]
    done = ns(place, "grpo", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "out/final_hf_model"
    assert [row["step"] for row in read_rows(place / "out/metrics.jsonl")] == [1, 2]
    samples = list(read_rows(place / "out/samples.jsonl"))
    assert {len(row["responses"]) for row in samples} == {4}
    assert sum(not row.get("rejected") for row in samples) == 4


def both_ranks(place: Path, *words: str, **variables: str) -> list[subprocess.CompletedProcess[str]]:
    """`ns WORDS` twice, each told its rank as `torch.distributed.run` does; its processes would import all anew."""
    common = {**os.environ, **variables, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}

    def run(rank: str) -> subprocess.CompletedProcess[str]:
        return forkserver.ns(words, cwd=place, env={**common, "RANK": rank, "LOCAL_RANK": rank}, timeout=500)

    with ThreadPoolExecutor() as threads:
        return list(threads.map(run, ("0", "1")))


@pytest.mark.slow
@pytest.mark.nightly
def test_two_processes_measure_and_save_whole_weights_or_refuse_at_once(place: Path) -> None:
    """Under ZeRO-3 that gathers nothing no file would hold the model."""
    pytest.importorskip("trl")
    write_rows(place / "held.jsonl", [{"question": "AB", "expected_answer": "A"}])
    words = [
        "grpo",
        "--backend=trl",
        "--model=model",
        "--training_data=problems.jsonl",
        "++eval_type=exact",
        *FAST,
    ]
    words += ["--eval_data=held.jsonl", "++eval.every=1", "++eval.max_tokens=2", "++trainer.weights=full"]
    words += ["++steps=1", "++batch_size=2", "++group_size=2", "++max_tokens=2"]

    for done in both_ranks(place, *words, "--output_dir=out"):
        assert done.returncode == 0, done.stderr
    assert "eval_reward" in next(iter(read_rows(place / "out/metrics.jsonl")))
    before, after = (load_file(place / name / "model.safetensors") for name in ("model", "out/final_hf_model"))
    assert before.keys() == after.keys()
    for split in both_ranks(place, *words, "--output_dir=split", ACCELERATE_DEEPSPEED_ZERO_STAGE="3"):
        assert split.returncode != 0
        assert "split the weights over the processes (DeepSpeed ZeRO-3)" in split.stderr
    assert not list((place / "split").glob("checkpoint-*"))


@pytest.mark.parametrize(
    ("backend", "others"),
    [
        ("cpu", ["++trainer.threads=2"]),
        pytest.param(
            "trl",
            ["++trainer.threads=2", "++trainer.trl.micro_batch_size=1", "++trainer.trl.attention=eager"],
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_how_a_machine_computes_is_no_other_setting(place: Path, backend: str, others: list[str]) -> None:
    if backend == "trl":
        pytest.importorskip("trl")
    words = ["sft", "--model=model", "--training_data=texts.jsonl", "--output_dir=out", f"--backend={backend}"]
    words += ["++batch_size=2", "++steps=4", "++save_every=1", "++trainer.dtype=float32", "++trainer.lora.rank=4"]
    first = ns(place, *words, "++trainer.threads=1", "++checkpoint_must_save_by=00:00:00:00")
    assert first.returncode == 130, first.stderr
    done = list(read_rows(place / "out/metrics.jsonl"))
    again = ns(place, *words, *others)
    assert again.returncode == 0, again.stderr
    rows = list(read_rows(place / "out/metrics.jsonl"))
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert rows[: len(done)] == done
    other = ns(place, *words, "++trainer.lora.rank=2")
    assert other.returncode == 2
    assert "other settings: trainer" in other.stderr


def test_sequences_that_do_not_fit(place: Path) -> None:
    words = ["sft", "--model=model", "--training_data=texts.jsonl", "--output_dir=out", *FAST, "++batch_size=4"]
    write_rows(place / "texts.jsonl", [{"input": "AB", "output": "C" * n} for n in (1, 2, 40, 50, 3, 4)])
    done = ns(place, *words, "++max_length=20")
    assert done.returncode == 2
    assert "2 of 6 sequences are longer than the limit of 20 tokens (longest: 52)" in done.stderr
    assert "++too_long=drop" in done.stderr
    done = ns(place, *words, "++max_length=20", "++too_long=truncate", "++steps=1")
    assert done.returncode == 0, done.stderr
    assert "0 left out, 2 truncated" in done.stdout


def test_a_run_ends_before_its_time_is_over(place: Path) -> None:
    words = ["sft", "--model=model", "--training_data=chats.jsonl", "--output_dir=out", *FAST, "++steps=40000"]
    done = ns(place, *words, "++checkpoint_must_save_by=00:00:00:02")
    assert done.returncode == 130, done.stderr
    at = list(read_rows(place / "out/checkpoints.jsonl"))[-1]["step"]
    assert [row["step"] for row in read_rows(place / "out/metrics.jsonl")] == list(range(1, at + 1))
    assert "expected dd:hh:mm:ss" in ns(place, *words, "++checkpoint_must_save_by=5").stderr


def test_problems_with_wrong_answers_are_left_out(place: Path) -> None:
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
        (["sft", "--model=model", "--training_data=empty.jsonl"], "empty.jsonl has no rows to train on"),
        (["sft", "--model=model", "--training_data=problems.jsonl", "--dry_run"], "its keys are expected_answer"),
        (["sft", "--model=model", "--training_data=hollow.jsonl"], "row 2: `output` is empty"),
        (["sft", "--model=models/mine/none", "--training_data=chats.jsonl"], "There is no folder"),
        (
            [
                "grpo",
                "--model=model",
                "--training_data=problems.jsonl",
                "--eval_data=empty.jsonl",
                "++max_tokens=2",
            ],
            "evaluate on",
        ),
        (
            ["sft", "--model=model", "--training_data=texts.jsonl", "++trainer.trl.packing=true"],
            "does not support trainer.trl.packing",
        ),
        (["sft", "--model=model", "--training_data=texts.jsonl", "++eval.patience=2"], "--eval_benchmark=NAME"),
        (
            ["sft", "--model=model", "--training_data=mute.jsonl"],
            "mute.jsonl, row 1: `messages` is not a conversation",
        ),
        (["sft", "--model=nowhere", "--training_data=chats.jsonl"], "Unknown model 'nowhere'"),
        (["sft", "--model=model", "--training_data=chats.jsonl", "++epoch=1"], "epochs"),
        (
            ["sft", "--model=model", "--training_data=chats.jsonl", "++learning_rate=inf"],
            "a number <= 1.0, got",
        ),
        (
            ["grpo", "--model=model", "--training_data=problems.jsonl", "++reward.correct=nan"],
            "++reward.correct=nan: expected a finite number, got nan",
        ),
        (["grpo", "--model=model"], "give one of them"),
        (["grpo", "--model=model", "--training_data=problems.jsonl", "++eval_type=maths"], "math"),
        (["grpo", "--model=model", "--training_data=chats.jsonl"], "question"),
    ],
)
def test_bad_input_is_told_in_a_sentence(place: Path, words: list[str], said: str) -> None:
    (place / "empty.jsonl").write_text("")
    write_rows(place / "hollow.jsonl", [{"input": "A", "output": "B"}, {"input": "A", "output": ""}])
    write_rows(place / "mute.jsonl", [{"messages": [{"content": "A"}, {"role": "assistant", "content": "B"}]}])
    done = ns(place, *words, "--output_dir=out", *FAST)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_grader_that_fails_says_why_and_no_reward_is_made_up(place: Path) -> None:
    write_rows(place / "problems.jsonl", [{"question": "AB"} for _ in range(4)])
    words = ["grpo", "--model=model", "--training_data=problems.jsonl", "--output_dir=out", "++eval_type=exact"]
    done = ns(place, *words, *FAST, "++batch_size=2", "++group_size=2", "++max_tokens=2", "++steps=1")
    assert done.returncode == 1
    assert "None of the samples could be graded" in done.stderr
    assert "expected_answer" in done.stderr
    assert not (place / "out/metrics.jsonl").read_text()


def test_weights_of_another_model_are_not_trained(place: Path) -> None:
    with_tokenizer(tiny_folder(place / "other", num_hidden_layers=3, intermediate_size=64))
    words = ["sft", "--model=other", "--training_data=texts.jsonl", "++steps=1"]
    for backend in ("cpu", "trl"):
        if backend == "trl":
            pytest.importorskip("trl")
        done = ns(place, *words, f"--backend={backend}", f"--output_dir={backend}", *FAST)
        assert done.returncode == 2
        assert "The weights in other belong to another model than its config.json" in done.stderr
        assert "Traceback" not in done.stderr


def test_checkpoints_of_other_models_do_not_mix(place: Path) -> None:
    done = ns(place, "sft", "--model=model", "--training_data=texts.jsonl", "--output_dir=out", "++steps=1", *FAST)
    assert done.returncode == 0, done.stderr
    wide = load_file(place / "model/model.safetensors")
    (place / "wide").mkdir()
    save_file(
        {name: value.repeat_interleave(2, 0) for name, value in wide.items()}, place / "wide/model.safetensors"
    )
    (place / "wide/config.json").write_text((place / "model/config.json").read_text())
    adapter = "--adapter=out/checkpoint-000001"
    done = ns(place, "merge_lora", "--base_model=wide", adapter, "--output_model=merged")
    assert done.returncode == 2
    assert "out/checkpoint-000001 does not belong to the model wide" in done.stderr
    done = ns(place, "average_checkpoints", "--checkpoints", "model", "wide", "--output_model=mean")
    assert "wide is a checkpoint of another model" in done.stderr
    done = ns(place, "average_checkpoints", "--checkpoints", "model", "nowhere", "--output_model=mean")
    assert "There is no *.safetensors in nowhere." in done.stderr
    assert not (place / "merged").exists()
    assert not (place / "mean").exists()


@pytest.mark.nightly
def test_a_checkpoint_that_cannot_be_written_is_told_and_leaves_none(place: Path) -> None:
    resource = pytest.importorskip("resource")
    argv = [sys.executable, "-m", "newskills", "sft", "--model=model", "--training_data=texts.jsonl", "++steps=1"]
    done = subprocess.run(
        [*argv, "--output_dir=out", *FAST],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
    )
    assert done.returncode == 1
    assert "adapter_model.safetensors cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((place / "out").glob("checkpoint-*"))


def test_an_attention_that_is_not_installed(place: Path) -> None:
    pytest.importorskip("trl")
    words = [
        "sft",
        "--backend=trl",
        "--model=model",
        "--training_data=texts.jsonl",
        "--output_dir=out",
        "++steps=1",
    ]
    done = ns(place, *words, "++trainer.trl.attention=flash_attention_2", *FAST)
    assert done.returncode == 2
    assert "++trainer.trl.attention=flash_attention_2 cannot be used here" in done.stderr


@pytest.mark.nightly
def test_a_model_on_the_hub(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the hub's own cache; the same folder as a model there is refused with a sentence when it is not."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(place / "hub"))
    words = ["sft", "--model=someone/tiny", "--training_data=texts.jsonl", "--output_dir=out", "++steps=1", *FAST]
    done = ns(place, *words)
    assert done.returncode == 2
    assert (
        "someone/tiny is not a folder here, and could not be downloaded from the Hugging Face hub" in done.stderr
    )
    revision = "0123456789abcdef0123456789abcdef01234567"
    cached = place / "hub/models--someone--tiny"
    shutil.copytree(place / "model", cached / "snapshots" / revision)
    (cached / "refs").mkdir()
    (cached / "refs/main").write_text(revision)
    done = ns(place, *words)
    assert done.returncode == 0, done.stderr
    assert (place / "out/final_hf_model/model.safetensors").is_file()


def test_a_model_without_chat_template_learns_texts_only(place: Path) -> None:
    (place / "model/chat_template.jinja").unlink()
    words = ["sft", "--model=model", "--output_dir=out", "++steps=1", "++batch_size=2", *FAST]
    done = ns(place, *words, "--training_data=chats.jsonl")
    assert done.returncode == 2
    assert "has no chat template" in done.stderr
    done = ns(place, *words, "--training_data=texts.jsonl")
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_models_change_their_form(place: Path) -> None:
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


def test_what_is_said_at_the_end_has_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with steps_shown("SFT") as watch:
        watch.on_start(0, 9)
        watch.on_step(Progress(done=3, steps=9, metrics={}))
    assert capsys.readouterr().err.endswith(" left\n")


LETTERS = """
from newskills.base.benchmark import Benchmark

BENCHMARK = Benchmark(
    name="{name}",
    category="reasoning",
    title="{name}",
    prompt="generic/default",
    grader="exact",
    generate_rows=lambda split: (
        {{"id": str(n), "question": f"{name} {{n}}", "expected_answer": "A"}} for n in range(9)
    ),
)
"""


@pytest.mark.nightly
def test_several_benchmarks_are_weighed_and_solvers_are_those_of_an_evaluation(place: Path) -> None:
    for name in ("ab", "cd"):
        (place / f"{name}.py").write_text(LETTERS.format(name=name))
        assert ns(place, "prepare_data", f"./{name}.py", "--data_dir=data").returncode == 0
    words = ["grpo", "--model=model", "--split=test", "--data_dir=data", "--output_dir=out", "--allow_overlap"]
    both = "--benchmark=./ab.py:2,./cd.py"
    shown = ns(place, *words, both, "--dry_run")
    assert shown.returncode == 0, shown.stderr
    assert "9 problems, prompt generic/default, weight 2" in " ".join(shown.stdout.split())
    small = ["++steps=1", "++batch_size=3", "++group_size=2", "++max_tokens=2", "++put_aside=4", *FAST]
    done = ns(place, *words, both, *small)
    assert done.returncode == 0, done.stderr
    (row,) = read_rows(place / "out/metrics.jsonl")
    assert {"reward/benchmark=ab", "reward/benchmark=cd", "put_aside"} <= row.keys()
    assert sorted(row["benchmark"] for row in read_rows(place / "out/samples.jsonl")) == ["ab", "ab", "cd"]
    other = ns(place, *words, "--benchmark=./ab.py:1,./cd.py", *small)
    assert other.returncode == 2
    assert "other settings: weights" in other.stderr
    for wrong, sentence in (
        ([both, "++eval_type=math"], "++eval_type belongs to one benchmark"),
        (["--benchmark=./ab.py,./ab.py"], "names ab twice"),
        (["--benchmark=./ab.py", "++agent=nobody"], "Unknown agent 'nobody'"),
        (["--benchmark=./ab.py", "++solver=llm_judge"], "judges answers that its rows hold"),
    ):
        refused = ns(place, *words, *wrong, *small, "--dry_run")
        assert refused.returncode == 2
        assert sentence in " ".join(refused.stderr.split())
