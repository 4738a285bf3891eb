# SPDX-License-Identifier: Apache-2.0
"""A step of a training is done again to show what it did."""

import hashlib
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.train.loops.test_loops import GRPO, PROBLEMS, SMALL, decode, metrics, reinforce, sevens
from tests.train.tiny import tiny_folder

from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.pipelines.training.methods.explain import explanation_lines
from newskills.train.backends.cpu.trainer import CpuTrainer
from newskills.train.loops.explaining import explained
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import RewardedProblems
from newskills.train.loops.samples import Scorer

CONFIG = msgspec.structs.replace(GRPO, resample=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def trained(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run"
    assert reinforce(model, path, CONFIG)
    return path


def explanation(model: Path, path: Path, step: int) -> dict[str, Any]:
    data = RewardedProblems(PROBLEMS, Scorer(sevens, decode, [0]))
    return explained(CpuTrainer(model, SMALL), data, CONFIG, TrainingFolder(path, {}, writes=False), step)


def hashes(path: Path) -> dict[str, str]:
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize("step", [1, 5, 8])
def test_the_step_is_that_of_the_run(model: Path, trained: Path, step: int) -> None:
    """From the start, right after a checkpoint would be, and some steps behind one; nothing of the run changes."""
    before = hashes(trained)
    found = explanation(model, trained, step)
    assert hashes(trained) == before
    row = metrics(trained)[step - 1]
    measured = {name: found[name] for name in row if not name.startswith("kl_")}
    assert measured == pytest.approx({name: row[name] for name in measured}, rel=1e-6, abs=1e-8)
    logged = [row for row in read_rows(trained / "samples.jsonl") if row["step"] == step]
    shown = [
        {**group, "responses": [{k: v for k, v in one.items() if k != "tokens"} for one in group["responses"]]}
        for group in found["groups"]
    ]
    assert shown == logged


def test_what_is_rewarded_becomes_likelier(model: Path, trained: Path) -> None:
    found = explanation(model, trained, 3)
    replies = [reply for group in found["groups"] if not group.get("rejected") for reply in group["responses"]]
    pushed = {
        right: [
            math.fsum(after - before for _, before, after in reply["tokens"])
            for reply in replies
            if reply["advantage"] and (reply["advantage"] > 0) is right
        ]
        for right in (True, False)
    }
    assert min(map(len, pushed.values())) > 0
    assert sum(pushed[True]) / len(pushed[True]) > 0 > sum(pushed[False]) / len(pushed[False])
    assert all(" ".join(text for text, *_ in reply["tokens"]).startswith(reply["text"]) for reply in replies)


def test_the_text_shows_each_group_and_reply(model: Path, trained: Path) -> None:
    found = explanation(model, trained, 3)
    lines = list(explanation_lines(found))
    assert lines[0].startswith(f"Step 3: {len(found['groups'])} groups; reward ")
    assert sum(line.startswith("Group ") for line in lines) == len(found["groups"])
    assert sum("advantage" in line and "(most: " in line for line in lines) == len(found["groups"]) * 8


def test_a_step_that_was_not_done_is_refused(model: Path, trained: Path) -> None:
    with pytest.raises(DataError, match="no step 13: 12 are done"):
        explanation(model, trained, 13)
