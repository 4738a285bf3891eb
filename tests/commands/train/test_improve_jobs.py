# SPDX-License-Identifier: Apache-2.0
"""`ns improve` as a job: it types the same command, with paths as jobs see them, and resumes in those after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.running import write
from tests.commands.train.test_training_pipelines import plan_of, words_of

from newskills.base.errors import ConfigError, UnknownNameError

LINE = (
    "improve --model=/disk/base --benchmark=gsm8k --output_dir=/disk/out --rounds=3 --guard=mmlu --server_type=vllm "
    "--server_gpus=2 --backend=trl --dependent_jobs=4 ++samples=8"
)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that containers see as /disk."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "disk/problems.jsonl", [{"id": 1, "problem": "1 + 1?", "expected_answer": "2"}])
    (tmp_path / "disk/stages.yaml").write_text("stages:\n  - {name: a, method: grpo, samples: 0}\n")
    return tmp_path / "disk"


def test_the_job_types_the_command_and_resumes_in_those_after_it(disk: Path) -> None:
    more = ("--training_data=/disk/problems.jsonl", "--config=/disk/stages.yaml", "--partition=gpu")
    (job,) = plan_of(disk, LINE, *more).jobs
    assert (job.name, job.copies, job.groups[0].hardware.num_gpus) == ("improve", 4, 2)
    words = words_of(job)
    assert words[1:5] == ["-m", "newskills", "improve", "--cluster=none"]
    options = {word.partition("=")[0]: word.partition("=")[2] for word in words[5:]}
    assert options == {
        "--model": "/disk/base",
        "--benchmark": "gsm8k",
        "--output_dir": "/disk/out",
        "--rounds": "3",
        "--guard": "mmlu",
        "--server_type": "vllm",
        "--server_gpus": "2",
        "--backend": "trl",
        "--training_data": "/disk/problems.jsonl",
        "--config": "/disk/stages.yaml",
        "++samples": "8",
    }


def test_settings_that_are_none_are_refused_before_a_job_is_submitted(disk: Path) -> None:
    with pytest.raises(UnknownNameError, match="sample_count"):
        plan_of(disk, LINE, "++sample_count=3")
    (disk / "stages.yaml").write_text("stages:\n  - {name: a, samples: 0}\n")
    with pytest.raises(ConfigError, match="nothing to train on"):
        plan_of(disk, LINE, "--config=/disk/stages.yaml")
