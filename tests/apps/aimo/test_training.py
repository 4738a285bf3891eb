# SPDX-License-Identifier: Apache-2.0
"""All three stages as a person runs them: real processes, a tiny model, data in the schema of the published sets."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.apps.aimo.places import laid_out, ns, read, train_words

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills_aimo.recipe.training import begin_at

FULL = train_words("--stage=full", "--base-model=model", "--output-dir=out", "--learning-rate=0.01")
STAGES = ("sft_cot", "sft_tir", "rl_math")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """(folder, what an undisturbed run has said)."""
    folder = laid_out(tmp_path_factory.mktemp("whole"))
    done = ns(folder, *FULL)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def results(folder: Path) -> tuple[list[Row], bytes]:
    """The numbers of all stages, and the bytes of the last model."""
    metrics = [
        {key: value for key, value in row.items() if key != "seconds"}
        for stage in STAGES
        for row in read(folder / "out" / stage / "metrics.jsonl")
    ]
    return metrics, (folder / "out/rl_math/final_hf_model/model.safetensors").read_bytes()


@pytest.mark.slow
def test_three_stages_one_after_the_other(whole: tuple[Path, str]) -> None:
    folder, said = whole
    assert "overlap: 1 of 13 rows are problems of tests.jsonl" in said
    assert "code: 13 of 17 rows print what they show; left out: 4 with another output" in said
    for stage, before in zip(STAGES, ("model", "out/sft_cot", "out/sft_tir"), strict=True):
        assert f"{before} → out/{stage}" in said
        assert (folder / "out" / stage / "final_hf_model/config.json").is_file()
        assert list((folder / "out" / stage).glob("checkpoint-*"))
    learnt = [str(row["messages"]) for row in read(folder / "out/sft_cot/data/train.jsonl")]
    (held,) = read(folder / "out/sft_cot/data/aimo-held-out/validation.jsonl")
    n = int(held["problem"].split()[2])
    assert held == {"problem": f"WHAT IS {n} + {n}?", "expected_answer": str(2 * n)}
    assert not [row for row in learnt if held["problem"] in row or "7 + 7" in row]
    for stage in ("sft_tir", "rl_math"):
        assert "eval_reward" in read(folder / "out" / stage / "metrics.jsonl")[-1]
    assert list((folder / "out/rl_math").rglob("events.out.tfevents.*"))
    for row in read(folder / "out/sft_tir/data/train.jsonl"):
        problem, shown = row["messages"][-2]["content"], row["messages"][-1]["content"]
        n = int(problem.split()[2])
        assert n % 4 != 3
        assert f"```output\n{3 * n}\n```" in shown
    rewards = {one["reward"] for row in read(folder / "out/rl_math/samples.jsonl") for one in row["responses"]}
    assert rewards <= {1.1, 1.0, -0.4, -0.5}


def test_the_same_command_has_nothing_to_do(whole: tuple[Path, str]) -> None:
    folder, _ = whole
    before = results(folder)
    again = ns(folder, *FULL)
    assert again.returncode == 0
    assert [line for line in again.stdout.splitlines() if "done" in line] == again.stdout.splitlines()
    assert results(folder) == before


@pytest.mark.nightly
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_numbers(
    whole: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = whole
    laid_out(tmp_path)
    for place in ("sft_cot/checkpoints.jsonl", "sft_tir/data/made.json", "rl_math/checkpoints.jsonl"):
        killed_when(tmp_path / "out" / place, tmp_path)
    done = ns(tmp_path, *FULL, "--report-to=none")
    assert done.returncode == 0, done.stderr
    assert results(tmp_path) == results(folder)


def killed_when(mark: Path, folder: Path) -> None:
    """Runs until there is something in the file `mark`."""
    with subprocess.Popen(
        [sys.executable, "-m", "newskills", *FULL, "--report-to=none"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 300
        while not (mark.is_file() and mark.stat().st_size):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.nightly
def test_one_stage_from_another_model_and_a_branch_of_it(whole: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = whole
    words = train_words(
        "--stage=tir", "--base-model=out/sft_cot", "--learning-rate=0.01", "--max-samples=9", "++tir.epochs=3"
    )
    base = ns(folder, *words, "--output-dir=one")
    assert base.returncode == 0, base.stderr
    branch = ns(folder, *words, "--output-dir=branch", "--resume-from-checkpoint", "one/checkpoint-2")
    assert branch.returncode == 0, branch.stderr
    assert read(folder / "branch/metrics.jsonl")[0]["step"] == 3
    one, other = (folder / name / "final_hf_model/model.safetensors" for name in ("one", "branch"))
    assert one.read_bytes() == other.read_bytes()


def test_a_branch_never_loses_checkpoints(whole: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = whole
    run = tmp_path / "run"
    shutil.copytree(folder / "out/sft_tir", run)
    last = sorted(run.glob("checkpoint-*"))[-1]
    begin_at(last, run)
    with pytest.raises(ConfigError, match="would lose them"):
        begin_at(run / "checkpoint-000001", run)
    with pytest.raises(ConfigError, match="checkpoint-000003"):
        begin_at(run / "checkpoint-9", run)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stage=tir",), "There is no model in outputs/sft_cot"),
        (("--stage=rl", "--base-model=model", "++rl.num_generations=3"), "not a multiple of num_generations=3"),
        (("--stage=full", "--base-model=model", "--resume-from-checkpoint=x"), "is for one stage only"),
        (
            ("--stage=rl", "--base-model=model", "--resume-from-checkpoint=x/checkpoint-5"),
            "no checkpoint x/checkpoint-5",
        ),
        (("--stage=cot", "--base-model=model", "--use-llm-judge"), "--llm-judge-model"),
        (("--stage=cot", "--base-model=model", "++cot.max_length=3"), "longer than 3 tokens"),
        (("--stage=cot", "--base-model=model", "++cot.data_files=[none.jsonl]"), "none.jsonl"),
        (("--stage=nothing",), "cot"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    whole: tuple[Path, str], words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    folder, _ = whole
    where = () if words[0] in ("--stage=full", "--stage=nothing") else (f"--output-dir={tmp_path}/out",)
    done = ns(folder, *train_words(*words, *where))
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr
