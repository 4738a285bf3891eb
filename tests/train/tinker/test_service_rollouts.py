# SPDX-License-Identifier: Apache-2.0
"""GRPO at a Tinker service on rollouts of several turns: the numbers of the cpu trainer, which computes there, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.train.loops.test_loops import GRPO, PROBLEMS, decode, metrics, sevens
from tests.train.loops.test_rollouts import two_turns
from tests.train.tinker.services import KEY, connected, quiet, service
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.base.store import read_rows
from newskills.train.cpu.llama import LoraConfig
from newskills.train.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import grpo
from newskills.train.loops.samples import MixedScorer, Scorer

pytest.importorskip("tinker", reason="needs newskills[tinker]")
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # see `quiet`
    pytest.mark.slow,
]
CONFIG = msgspec.structs.replace(
    GRPO, steps=4, save_every=0, put_aside=2, resample=1, weights={"turns": 2.0, "reply": 1.0}
)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    monkeypatch.setenv("TINKER_TELEMETRY", "0")
    with quiet(), service([with_tokenizer(tiny_folder(tmp_path / "tiny"))], tmp_path / "states") as found:
        yield found


def test_turns_and_several_benchmarks_are_learnt_from_as_here(address: str, tmp_path: Path) -> None:
    def learn(client: Any, name: str) -> None:
        folder = TrainingFolder(tmp_path / name, {})
        scorers = {"turns": Scorer(sevens, decode, [0], two_turns), "reply": Scorer(sevens, decode, [0])}
        scorer = MixedScorer(reward=sevens, decode=decode, stops=[0], scorers=scorers)
        problems = [
            msgspec.structs.replace(problem, source=list(scorers)[number % 2])
            for number, problem in enumerate(PROBLEMS)
        ]
        assert grpo(client, problems, CONFIG, folder, scorer)
        folder.close()

    with connected(address) as client:
        learn(client, "service")
    lora = LoraConfig(rank=4, seed=5)
    learn(CpuTrainer(tmp_path / "tiny", CpuTrainerConfig(lora=lora, dtype="float32", threads=1)), "here")
    for theirs, ours in zip(metrics(tmp_path / "service"), metrics(tmp_path / "here"), strict=True):
        assert theirs == pytest.approx(ours, rel=1e-4, abs=1e-6)
        assert ours["turns"] > 1
        assert ours["lost"] > 0
    rows = [list(read_rows(tmp_path / name / "samples.jsonl")) for name in ("service", "here")]
    texts = [[response["text"] for row in part for response in row["responses"]] for part in rows]
    assert texts[0] == texts[1]
