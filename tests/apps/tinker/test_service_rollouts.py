# SPDX-License-Identifier: Apache-2.0
"""GRPO at a Tinker service on rollouts of several turns: the numbers of the cpu trainer on the same samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.apps.tinker.services import KEY, connected, quiet, service
from tests.train.loops.test_loops import GRPO, PROBLEMS, decode, metrics, sevens
from tests.train.loops.test_rollouts import two_turns
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import grpo
from newskills.train.loops.samples import MixedScorer, Problem, RollOut, Rollout, Scorer
from newskills.train.verbs import SamplingClient, SamplingParams

pytest.importorskip("tinker", reason="needs newskills[tinker]")
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # see `quiet`
    pytest.mark.slow,
]
CONFIG = msgspec.structs.replace(
    GRPO, steps=4, save_every=0, put_aside=2, resample=1, weights={"turns": 2.0, "reply": 1.0}
)


class Recorder:
    """Solves problems as `solve` does and keeps the rollouts, or gives those of `recorded`."""

    def __init__(self, solve: RollOut, recorded: Sequence[list[list[Rollout]]] = ()) -> None:
        self.made: list[list[list[Rollout]]] = []
        self._solve, self._recorded = solve, list(recorded)

    def __call__(
        self, client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        groups = self._recorded.pop(0) if self._recorded else self._solve(client, problems, count, params)
        self.made.append(groups)
        return groups


def learn(client: Any, path: Path, solvers: dict[str, Recorder]) -> None:
    scorers = {name: Scorer(sevens, decode, [0], solver) for name, solver in solvers.items()}
    scorer = MixedScorer(reward=sevens, decode=decode, stops=[0], scorers=scorers)
    problems = [
        msgspec.structs.replace(problem, source=list(scorers)[number % 2])
        for number, problem in enumerate(PROBLEMS)
    ]
    folder = TrainingFolder(path, {})
    assert grpo(client, problems, CONFIG, folder, scorer)
    folder.close()


SIGNAL = {"gradient_square", "gradient_variance", "noise_scale", "signal", "halves_cosine", "kl_kept"}


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    monkeypatch.setenv("TINKER_TELEMETRY", "0")
    with quiet(), service([with_tokenizer(tiny_folder(tmp_path / "tiny"))], tmp_path / "states") as found:
        yield found


@pytest.mark.nightly
def test_turns_and_several_benchmarks_are_learnt_from_as_here(address: str, tmp_path: Path) -> None:
    solvers = {"turns": Recorder(two_turns), "reply": Recorder(Scorer(sevens, decode, [0]).rollouts)}
    with connected(address) as client:
        learn(client, tmp_path / "service", solvers)
    lora = LoraConfig(rank=4, seed=5)
    here = CpuTrainer(tmp_path / "tiny", CpuTrainerConfig(lora=lora, dtype="float32", threads=1))
    learn(here, tmp_path / "here", {name: Recorder(two_turns, solver.made) for name, solver in solvers.items()})
    for theirs, ours in zip(metrics(tmp_path / "service"), metrics(tmp_path / "here"), strict=True):
        assert {"signal"} <= ours.keys() - theirs.keys() <= SIGNAL  # which needs the gradients themselves
        ours = {name: ours[name] for name in theirs}
        assert theirs == pytest.approx(ours, rel=1e-4, abs=1e-6)
        assert ours["turns"] > 1
        assert ours["lost"] > 0
        assert ours["sampler_kl"] < 1e-6
