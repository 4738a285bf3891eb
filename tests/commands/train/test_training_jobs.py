# SPDX-License-Identifier: Apache-2.0
"""Our own trainings as jobs: they type the same command, with paths as jobs see them, and resume in those after it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests import forkserver
from tests.commands.train.test_training_pipelines import plan_of, words_of
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

import newskills
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.plan import Ref
from newskills.base.store import read_rows, write_rows
from newskills.launch.experiments import ExperimentRecords
from newskills.pipelines.training.command_script import RESUMED_BY_NEXT_JOB

LINE = "sft --model=/disk/base --training_data=/disk/texts.jsonl --output_dir=/disk/out --partition=gpu"
LINES = {
    "sft": LINE,
    "dpo": "dpo --model=/disk/base --input_files=/disk/output-rs*.jsonl --benchmark=gsm8k --output_dir=/disk/out",
    "kto": "kto --model=/disk/base --training_data=/disk/texts.jsonl --output_dir=/disk/out",
    "grpo": "grpo --model=hub/name --benchmark=./own.py --eval_data=texts.jsonl --output_dir=/disk/out",
    "distill": "distill --model=/disk/base --teacher=/disk/base --benchmark=gsm8k --output_dir=/disk/out",
    "reward_model": "reward_model --model=/disk/base --training_data=/disk/texts.jsonl --output_dir=/disk/out",
}


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that containers see as /disk, with a model and data."""
    monkeypatch.chdir(tmp_path)
    with_tokenizer(tiny_folder(tmp_path / "disk/base", eos_token_id=VOCAB - 1, max_position_embeddings=256))
    write_rows(tmp_path / "disk/texts.jsonl", [{"input": f"AB{n}", "output": f"{n}BA<|end|>"} for n in range(8)])
    write_rows(tmp_path / "disk/output-rs0.jsonl", [{"question": "AB", "generation": "B", "outcome": "correct"}])
    return tmp_path / "disk"


@pytest.mark.parametrize("command", LINES)
def test_the_job_types_the_command_and_resumes_in_those_after_it(
    disk: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(disk)
    (job,) = plan_of(disk, LINES[command], "--dependent_jobs=4", "--num_gpus=1", "++steps=3").jobs
    assert (job.name, job.copies, job.groups[0].hardware.num_gpus) == (command, 4, 1)
    words = words_of(job)
    assert words[1:5] == ["-m", "newskills", command, "--cluster=none"]
    typed = {word.partition("=")[0]: word.partition("=")[2] for word in LINES[command].split()[1:]}
    typed.pop("--partition", None)
    typed |= {"--eval_data": "/disk/texts.jsonl"} if command == "grpo" else {}
    typed |= {"++steps": "3"}
    assert {word.partition("=")[0]: word.partition("=")[2] for word in words[5:]} == typed


def test_with_trl_each_gpu_of_each_node_gets_a_process(disk: Path) -> None:
    (job,) = plan_of(disk, LINE, "--backend=trl", "--num_gpus=8", "--num_nodes=2").jobs
    (group,) = job.groups
    assert (group.hardware.num_gpus, group.hardware.num_nodes) == (8, 2)
    assert words_of(job)[-1] == "++trainer.trl.processes=8"
    (main,) = group.commands
    assert main.script.all_nodes
    assert main.script.env["NNODES"] == "2"
    assert main.script.env["NODE_RANK"] == Ref("main", "rank")
    (job,) = plan_of(disk, LINE, "--backend=trl", "--num_gpus=8", "++trainer.trl.processes=4").jobs
    assert [word for word in words_of(job) if "processes" in word] == ["++trainer.trl.processes=4"]


@pytest.mark.parametrize(
    ("words", "kind", "sentence"),
    [
        (["--num_nodes=2"], ConfigError, "--num_nodes=2: the trainer cpu trains in one process"),
        (["--backend=clockwork"], UnknownNameError, "clockwork"),
        (["--backend=nemo-rl"], ConfigError, "nemo-rl runs SFT on clusters, by a command of its own"),
        (["--backend=verl"], ConfigError, "verl does not support SFT; it has ns verl ppo"),
        (["--training_data=/disk/none.jsonl"], DataError, "none.jsonl"),
        (["--output_dir=elsewhere"], ConfigError, "do not see"),
        (["++epoch=1"], UnknownNameError, "epochs"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_a_job_is_submitted(
    disk: Path, words: list[str], kind: type[Exception], sentence: str
) -> None:
    names = {word.partition("=")[0] for word in words}
    line = " ".join(word for word in LINE.split() if word.partition("=")[0] not in names)
    with pytest.raises(kind, match=sentence):
        plan_of(disk, line, *words)


def test_what_trains_in_one_process_gets_one(disk: Path) -> None:
    line = f"{LINES['distill']} --by=texts --backend=trl"
    (job,) = plan_of(disk, line, "--num_gpus=8").jobs
    assert "++trainer.trl.processes=8" not in words_of(job)
    with pytest.raises(ConfigError, match="ns distill trains in one process"):
        plan_of(disk, line, "--num_nodes=2")


@pytest.mark.slow
def test_a_job_on_this_machine_makes_the_model_of_a_training_here(disk: Path) -> None:
    records = {**os.environ, "NEWSKILLS_EXPERIMENTS_DIR": str(disk / "experiments")}
    (disk / "cluster_configs").mkdir()
    (disk / "cluster_configs/here.yaml").write_text(
        f"executor: local\nskip_hf_home_check: true\njob_dir: {disk}/jobs\n"
    )
    words = ["sft", "--model=base", "--training_data=texts.jsonl", "++steps=3", "++batch_size=4"]
    words += ["++trainer.threads=1", "++trainer.dtype=float32", "++trainer.lora.rank=4"]
    here = forkserver.ns([*words, "--output_dir=here"], cwd=disk, env=records)
    assert here.returncode == 0, here.stderr
    job = forkserver.ns([*words, "--output_dir=job", "--cluster=here", "--expname=tune"], cwd=disk, env=records)
    assert job.returncode == 0, job.stderr
    assert "1 jobs in" in job.stderr
    assert ExperimentRecords(records).find("tune").jobs[0].name == "tune"
    name = "final_hf_model/model.safetensors"
    assert (disk / "job" / name).read_bytes() == (disk / "here" / name).read_bytes()
    assert [row["loss"] for row in read_rows(disk / "job/metrics.jsonl")] == [
        row["loss"] for row in read_rows(disk / "here/metrics.jsonl")
    ]
    settings = [json.loads((disk / place / "settings.json").read_text()) for place in ("here", "job")]
    assert settings[0] | {"model": "", "data": ""} == settings[1] | {"model": "", "data": ""}
    shown = forkserver.ns(["status", "tune"], cwd=disk, env=records)
    assert "completed" in shown.stdout, shown.stdout + shown.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("variables", "code"), [({}, 130), ({RESUMED_BY_NEXT_JOB: "1"}, 75)])
def test_a_job_that_stops_itself_asks_for_the_one_behind(disk: Path, variables: dict[str, str], code: int) -> None:
    words = ["sft", "--model=base", "--training_data=texts.jsonl", "--output_dir=out", "++steps=1000000"]
    words += ["++trainer.threads=1", "++trainer.lora.rank=4", "++checkpoint_must_save_by=00:00:00:02"]
    done = forkserver.ns(words, cwd=disk, env={**os.environ, **variables})
    assert done.returncode == code, done.stderr
    assert "run the same command to resume from there" in done.stdout
    assert list(read_rows(disk / "out/checkpoints.jsonl"))


@pytest.mark.slow
def test_python_gets_what_was_trained(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(disk)
    keys = newskills.wrap_arguments("++steps=3 ++batch_size=4 ++trainer.threads=1 ++trainer.lora.rank=4")
    outcome = newskills.sft(keys, model="base", training_data="texts.jsonl", output_dir="out")
    assert isinstance(outcome, newskills.TrainingOutcome)
    assert (outcome.model, outcome.output_dir, outcome.steps) == (Path("out/final_hf_model"), Path("out"), 3)
    *_, last = read_rows(disk / "out/metrics.jsonl")
    assert outcome.metrics == {name: value for name, value in last.items() if name != "step"}
    assert (outcome.model / "model.safetensors").is_file()
    shown: object = newskills.sft(
        keys, model="base", training_data="texts.jsonl", output_dir="other", dry_run=True
    )
    assert shown is None
    assert not (disk / "other").exists()
