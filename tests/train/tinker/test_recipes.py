# SPDX-License-Identifier: Apache-2.0
"""The recipes and our loops over the public client, against our service: what they learn and how they go on."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.train.tinker.services import KEY, process, quiet
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.base.store import read_rows

pytest.importorskip("tinker", reason="needs newskills[tinker]")
UNTIMED = ("time/total", "seconds", "state_path", "sampler_path")
PAIRS = [{"input": chr(65 + at) * 3, "output": "BC" + chr(66 + at)} for at in range(12)]
# The model has one word for each character, so it hits on "A" in a box only where it is asked for one letter.
PROBLEMS = [{"problem": f"{at}?", "expected_answer": "7"} for at in range(12)]


@pytest.fixture(scope="module", autouse=True)
def collected():
    with quiet():
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module")
def environ(model, tmp_path_factory):
    with process(model, tmp_path_factory.mktemp("states")) as (_, address):
        yield os.environ | {"TINKER_BASE_URL": address, "TINKER_API_KEY": KEY, "TINKER_TELEMETRY": "0"}


@pytest.fixture
def files(tmp_path):
    for name, rows in (("pairs", PAIRS), ("problems", PROBLEMS)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def ns(environ, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "newskills", *map(str, words)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def done(running, code=0):
    said = running.communicate(timeout=120)[0]
    assert running.returncode == code, said
    return said


def rows_of(path, name="metrics.jsonl"):
    return [{key: value for key, value in row.items() if key not in UNTIMED} for row in read_rows(path / name)]


def killed_after(running, path, lines):
    """Kills the run once its metrics have so many lines."""
    end = time.monotonic() + 60
    while not (path / "metrics.jsonl").is_file() or len((path / "metrics.jsonl").read_text().splitlines()) < lines:
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.communicate()


def close_to(found, expected):
    assert len(found) == len(expected)
    for one, right in zip(found, expected, strict=True):
        assert one == {key: pytest.approx(v, abs=1e-6) if isinstance(v, float) else v for key, v in right.items()}


def test_supervised_fine_tuning_goes_on_after_a_kill_to_the_same_numbers(environ, model, files):
    def line(name):
        words = [f"model_name={model}", f"log_dir={files / name}", f"dataset_name={files / 'pairs.jsonl'}"]
        return ["tinker", "sft", *words, "batch_size=4", "num_epochs=6", "lora_rank=4", "save_every=4"]

    said = done(ns(environ, *line("whole"), "verbose=true"))
    assert "step 18 (100%)" in said
    expected = rows_of(files / "whole")
    assert [row["progress/batch"] for row in expected] == list(range(1, 19))
    assert expected[-1]["loss/mean"] < 0.6 * expected[0]["loss/mean"]
    assert set(expected[0]) >= {"progress/epoch", "progress/done_frac", "optim/lr", "train/datums", "train/step"}
    checkpoints = list(read_rows(files / "whole/checkpoints.jsonl"))
    assert [one["name"] for one in checkpoints] == [*(f"checkpoint-{at:06d}" for at in (4, 8, 12, 16)), "final"]
    assert set(checkpoints[-1]) == {"name", "batch", "epoch", "final", "state_path", "sampler_path"}
    assert set(checkpoints[0]) == {"name", "batch", "epoch", "state_path", "sampler_path"}
    killed_after(ns(environ, *line("killed")), files / "killed", 7)
    done(ns(environ, *line("killed")))
    close_to(rows_of(files / "killed"), expected)
    before = (files / "killed/metrics.jsonl").read_bytes()
    done(ns(environ, *line("killed")))
    assert (files / "killed/metrics.jsonl").read_bytes() == before
    assert "other options: batch_size" in done(ns(environ, *line("killed"), "batch_size=3"), 2)
    again = [*line("from"), f"resume_from={checkpoints[1]['state_path']}"]
    done(ns(environ, *again))
    assert rows_of(files / "from")[0]["loss/mean"] < 0.8 * expected[0]["loss/mean"]
    done(ns(environ, *line("later"), f"resume_from={files / 'whole'}", "learning_rate=1e-4"))
    assert rows_of(files / "later")[0]["progress/batch"] == 1
    assert "no tinker:// path, and no folder" in done(ns(environ, *line("no"), "resume_from=nowhere"), 2)


def test_reinforcement_goes_on_after_a_kill_to_the_same_numbers(environ, model, files):
    def line(name):
        words = [f"model_name={model}", f"log_dir={files / name}", f"dataset_name={files / 'problems.jsonl'}"]
        words += ["batch_size=4", "group_size=8", "num_epochs=3", "lora_rank=4", "max_tokens=6", "temperature=1"]
        return [
            "tinker",
            "rl",
            *words,
            "top_p=1",
            "save_every=2",
            "eval_every=4",
            "eval_samples=4",
            "format_bonus=0.5",
        ]

    done(ns(environ, *line("whole")))
    expected = rows_of(files / "whole")
    assert [row["progress/batch"] for row in expected] == list(range(1, 7))
    assert "eval/reward" in expected[3]
    assert set(expected[-1]) >= {"final/reward_mean", "reward/batch_mean", "reward/running_mean", "train/accuracy"}
    samples = list(read_rows(files / "whole/samples.jsonl"))
    assert len(samples) == 24
    assert set(samples[0]) == {
        *("step", "batch_idx", "problem_idx", "problem", "ground_truth", "responses", "mean_reward")
    }
    assert set(samples[0]["responses"][0]) == {"text", "reward", "advantage", "extracted_answer"}
    for row in samples:
        rewards = [one["reward"] for one in row["responses"]]
        assert row["mean_reward"] == pytest.approx(sum(rewards) / 8)
        assert [one["advantage"] for one in row["responses"]] == pytest.approx(
            [one - row["mean_reward"] for one in rewards]
        )
    killed_after(ns(environ, *line("killed")), files / "killed", 3)
    done(ns(environ, *line("killed")))
    close_to(rows_of(files / "killed"), expected)
    assert rows_of(files / "killed", "samples.jsonl") == samples


@pytest.mark.parametrize("command", ["sft", "grpo"])
def test_our_loops_train_at_a_service(environ, model, files, command):
    words = [f"--model={model}", f"--output_dir={files / 'out'}", "--backend=tinker", "++trainer.lora.rank=4"]
    more = ["++batch_size=4", "++learning_rate=0.02", "++save_every=2"]
    if command == "sft":
        words += [f"--training_data={files / 'pairs.jsonl'}", "++epochs=3"]
    else:
        words += [
            f"--training_data={files / 'problems.jsonl'}",
            "++prompt_config=generic/math",
            "++eval_type=math",
        ]
        words += ["++max_tokens=4", "++steps=3", "++reward.format.pattern=A", "++reward.format.pattern_bonus=1"]
    said = done(ns(environ, command, *words, *more))
    assert "final_hf_model" in said
    found = json.loads((files / "out/final_hf_model/tinker.json").read_text())
    last = list(read_rows(files / "out/checkpoints.jsonl"))[-1]
    assert found["sampler_path"] == last["sampler_path"]
    assert last["state_path"].startswith("tinker://")
    metrics = rows_of(files / "out")
    if command == "sft":
        assert metrics[-1]["loss"] < metrics[0]["loss"]
    else:
        assert len(metrics) == 3


def test_without_a_key_or_a_service(environ, model, files):
    words = [
        "tinker",
        "sft",
        f"model_name={model}",
        f"log_dir={files / 'x'}",
        f"dataset_name={files / 'pairs.jsonl'}",
    ]
    bare = {name: value for name, value in environ.items() if name != "TINKER_API_KEY"}
    assert "There is no TINKER_API_KEY" in done(ns(bare, *words), 1)
    assert "log_dir is missing" in done(ns(environ, *words[:3]), 2)
    assert "There is no file" in done(ns(environ, *words[:4], "dataset_name=none.jsonl"), 2)
    assert not (files / "x").exists()
