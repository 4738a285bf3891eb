# SPDX-License-Identifier: Apache-2.0
"""The recipes and our loops over the public client, against our service: what they learn and how they go on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.apps.tinker.services import KEY, process, quiet
from tests.train.tiny import tiny_folder, with_tokenizer

import newskills
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.cli import main
from newskills.run.training.skill import Skill, asking_by
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.verbs import SamplingParams

pytest.importorskip("tinker", reason="needs newskills[tinker]")
PROMPT = "generic/math"
UNTIMED = ("time/total", "seconds", "state_path", "sampler_path")
PAIRS = [{"input": chr(65 + at) * 3, "output": "BC" + chr(66 + at)} for at in range(12)]


pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # see `quiet`
    pytest.mark.slow,
]


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    with quiet():
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module")
def environ(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with process(model, tmp_path_factory.mktemp("states")) as (_, address):
        yield os.environ | {"TINKER_BASE_URL": address, "TINKER_API_KEY": KEY, "TINKER_TELEMETRY": "0"}


@pytest.fixture(scope="module")
def problems(model: Path) -> list[dict[str, Any]]:
    """Whose right answer is what the untrained model says at times: one of its tokens."""
    skill = Skill(model, asking_by(PROMPT, model))
    asked = [{"problem": f"{at}?", "expected_answer": ""} for at in range(12)]
    trainer = CpuTrainer(model, CpuTrainerConfig(lora=LoraConfig(rank=4), dtype="float32", threads=1))
    found = trainer.sample([skill.prompt(row) for row in asked], 40, SamplingParams(max_tokens=1))
    said = Counter(skill.tokenizer.decode(one.tokens) for group in found for one in group)
    right = next(text for text, count in said.most_common() if count < 100 and text.strip())
    return [{**row, "expected_answer": right} for row in asked]


@pytest.fixture
def files(tmp_path: Path, problems: list[dict[str, Any]]) -> Path:
    preferences = [
        {"prompt": row["input"], "chosen": row["output"], "rejected": row["output"][::-1] + "A"} for row in PAIRS
    ]
    for name, rows in (("pairs", PAIRS), ("preferences", preferences), ("problems", problems)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def here(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """A command in this process: what it says."""
    for name in ("TINKER_BASE_URL", "TINKER_API_KEY", "TINKER_TELEMETRY"):
        monkeypatch.setenv(name, environ[name])

    def run(*words: Any, code: int = 0) -> str:
        assert main(list(map(str, words))) == code
        return "".join(capfd.readouterr())

    return run


def ns(environ: dict[str, str], *words: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "newskills", *map(str, words)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def rows_of(path: Path, name: str = "metrics.jsonl") -> list[Row]:
    return [{key: value for key, value in row.items() if key not in UNTIMED} for row in read_rows(path / name)]


def killed_after(running: subprocess.Popen[str], path: Path, lines: int) -> None:
    """Kills the run once its metrics have so many lines."""
    end = time.monotonic() + 300
    while not (path / "metrics.jsonl").is_file() or len((path / "metrics.jsonl").read_text().splitlines()) < lines:
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.communicate()


def close_to(found: list[Row], expected: list[Row]) -> None:
    assert len(found) == len(expected)
    for one, right in zip(found, expected, strict=True):
        assert one == {key: pytest.approx(v, abs=1e-6) if isinstance(v, float) else v for key, v in right.items()}


@pytest.mark.nightly
def test_supervised_fine_tuning_goes_on_after_a_kill_to_the_same_numbers(
    here: Callable[..., str], environ: dict[str, str], model: Path, files: Path
) -> None:
    def line(name: str) -> list[str]:
        words = [f"model_name={model}", f"log_dir={files / name}", f"dataset_name={files / 'pairs.jsonl'}"]
        return ["tinker", "sft", *words, "batch_size=4", "num_epochs=6", "lora_rank=4", "save_every=4"]

    said = here(*line("whole"), "verbose=true")
    assert "step 18 (100%)" in said
    expected = rows_of(files / "whole")
    assert [row["progress/batch"] for row in expected] == list(range(1, 19))
    assert expected[-1]["loss/mean"] < 0.6 * expected[0]["loss/mean"]
    names = ["progress/batch", "progress/epoch", "progress/done_frac", "optim/lr", "loss/mean", "train/tokens"]
    assert list(expected[0]) == [*names, "train/datums", "optim/grad_norm", "train/step"]
    checkpoints = list(read_rows(files / "whole/checkpoints.jsonl"))
    assert [one["name"] for one in checkpoints] == [*(f"checkpoint-{at:06d}" for at in (4, 8, 12, 16)), "final"]
    assert set(checkpoints[-1]) == {"name", "batch", "epoch", "final", "state_path", "sampler_path"}
    assert set(checkpoints[0]) == {"name", "batch", "epoch", "state_path", "sampler_path"}
    killed_after(ns(environ, *line("killed")), files / "killed", 7)
    here(*line("killed"))
    close_to(rows_of(files / "killed"), expected)
    before = (files / "killed/metrics.jsonl").read_bytes()
    here(*line("killed"))
    assert (files / "killed/metrics.jsonl").read_bytes() == before
    keys = newskills.wrap_arguments(" ".join(f"++{word}" for word in line("killed")[2:]))
    done = newskills.tinker_sft(ctx=keys)
    last = list(read_rows(files / "killed/checkpoints.jsonl"))[-1]
    assert (done.sampler_path, done.state_path) == (last["sampler_path"], last["state_path"])
    assert done.metrics == list(read_rows(files / "killed/metrics.jsonl"))[-1]
    assert done.checkpoints == files / "killed/checkpoints.jsonl"
    assert "other options: batch_size" in here(*line("killed"), "batch_size=3", code=2)
    again = [*line("from"), f"resume_from={checkpoints[1]['state_path']}"]
    here(*again)
    assert rows_of(files / "from")[0]["loss/mean"] < 0.8 * expected[0]["loss/mean"]
    here(*line("later"), f"resume_from={files / 'whole'}", "learning_rate=1e-4")
    assert rows_of(files / "later")[0]["progress/batch"] == 1
    assert "expected a tinker:// path, or a folder" in here(*line("no"), "resume_from=nowhere", code=2)


@pytest.mark.nightly
def test_reinforcement_goes_on_after_a_kill_to_the_same_numbers(
    here: Callable[..., str], environ: dict[str, str], model: Path, files: Path
) -> None:
    def line(name: str) -> list[str]:
        words = [f"model_name={model}", f"log_dir={files / name}", f"dataset_name={files / 'problems.jsonl'}"]
        words += ["batch_size=4", "group_size=8", "num_epochs=4", "lora_rank=4", "max_tokens=1", "temperature=1"]
        words += [
            "top_p=1",
            "save_every=2",
            "eval_every=4",
            "eval_samples=4",
            "eval_type=exact",
            "learning_rate=0.03",
        ]
        return ["tinker", "rl", *words, f"prompt_config={PROMPT}"]

    here(*line("whole"))
    expected = rows_of(files / "whole")
    assert [row["progress/batch"] for row in expected] == list(range(1, 9))
    names = ["progress/batch", "progress/epoch", "progress/done_frac", "optim/lr", "train/datums", "train/step"]
    names += ["loss/sum", "loss/per_token", "optim/sampler_kl", "optim/grad_norm"]
    names += ["reward/batch_mean", "reward/running_mean", "train/accuracy"]
    assert list(expected[0]) == names
    assert list(expected[3]) == [*names, "eval/reward", "eval/correct", "eval/unscored"]
    assert "eval/reward" not in expected[4]
    assert expected[0]["train/datums"] > 0
    assert expected[-1]["train/accuracy"] > expected[0]["train/accuracy"] + 0.3
    assert set(expected[-1]) >= {"final/reward_mean", "reward/batch_mean", "reward/running_mean", "train/accuracy"}
    samples = list(read_rows(files / "whole/samples.jsonl"))
    assert len(samples) == 32
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
    here(*line("killed"))
    close_to(rows_of(files / "killed"), expected)
    assert rows_of(files / "killed", "samples.jsonl") == samples


@pytest.mark.parametrize("command", ["sft", "dpo", "grpo"])
def test_our_loops_train_at_a_service(here: Callable[..., str], model: Path, files: Path, command: str) -> None:
    words = [f"--model={model}", f"--output_dir={files / 'out'}", "--backend=tinker", "++trainer.lora.rank=4"]
    more = ["++batch_size=4", "++learning_rate=0.02", "++save_every=2"]
    if command == "sft":
        words += [f"--training_data={files / 'pairs.jsonl'}", "++epochs=3"]
    elif command == "dpo":
        words += [f"--training_data={files / 'preferences.jsonl'}", "++epochs=3"]
    else:
        words += [
            f"--training_data={files / 'problems.jsonl'}",
            "++prompt_config=generic/math",
            "++eval_type=math",
        ]
        words += [
            "++kl=0.01",
            "++max_tokens=4",
            "++steps=3",
            "++reward.format.pattern=A",
            "++reward.format.pattern_bonus=1",
        ]
    said = here(command, *words, *more)
    assert "final_hf_model" in said
    last = list(read_rows(files / "out/checkpoints.jsonl"))[-1]
    assert last["state_path"].startswith("tinker://")
    trained, before = (load_file(folder / "model.safetensors") for folder in (files / "out/final_hf_model", model))
    changed = [name for name, value in before.items() if not torch.equal(value, trained[name])]
    assert sum("_proj" in name for name in before) == len(changed) > 0
    metrics = rows_of(files / "out")
    if command in ("sft", "dpo"):
        assert metrics[-1]["loss"] < metrics[0]["loss"]
    else:
        assert metrics[-1]["reward"] > metrics[0]["reward"]


def test_without_a_key_or_a_file(
    here: Callable[..., str], monkeypatch: pytest.MonkeyPatch, model: Path, files: Path
) -> None:
    words = [
        "tinker",
        "sft",
        f"model_name={model}",
        f"log_dir={files / 'x'}",
        f"dataset_name={files / 'pairs.jsonl'}",
    ]
    assert "log_dir is missing" in here(*words[:3], code=2)
    assert "There is no file" in here(*words[:4], "dataset_name=none.jsonl", code=2)
    monkeypatch.delenv("TINKER_API_KEY")
    assert "TINKER_API_KEY is not set" in here(*words, code=1)
    assert not (files / "x").exists()
