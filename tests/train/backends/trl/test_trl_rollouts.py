# SPDX-License-Identifier: Apache-2.0
"""Rollouts of several turns with TRL: the masks, losses and weights of the cpu trainer on the same sequences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.train.backends.trl.test_trl_trainer import (
    END,
    GRPO,
    PROBLEMS,
    SETTINGS,
    alike,
    by_first,
    close,
    decode,
    metrics,
)
from tests.train.loops.test_rollouts import two_turns
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.base.errors import ConfigError
from newskills.base.store import read_rows
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems, grpo
from newskills.train.loops.samples import Judged, MixedScorer, Problem, Rollout, SampledTurn, Scorer
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import TrainerSettings
from newskills.train.trainers import make_trainer
from newskills.train.verbs import SamplingClient, SamplingParams

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
TURNS = msgspec.structs.replace(GRPO, steps=2, max_tokens=4, learning_rate=0.01, turn_weight=0.5)


class Turns:
    """Two turns of each attempt; every third attempt is shown the second one on its own, so that it is two sequences.

    Keeps the rollouts, and gives those of `recorded` where there are some.
    """

    def __init__(self, recorded: list[list[list[Rollout]]] | None = None) -> None:
        self.made: list[list[list[Rollout]]] = []
        self._recorded = list(recorded or ())

    def __call__(
        self, client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        groups = self._recorded.pop(0) if self._recorded else self._sample(client, problems, count, params)
        self.made.append(groups)
        return groups

    def _sample(
        self, client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        groups = two_turns(client, problems, count, params)
        return [
            [_apart(rollout) if at % 3 == 0 else rollout for at, rollout in enumerate(group)] for group in groups
        ]


def _apart(rollout: Rollout) -> Rollout:
    first, second = rollout.turns
    second = SampledTurn([9, *second.prompt], second.sampled)
    return msgspec.structs.replace(rollout, turns=[first, second], rewards=[float(len(rollout.text) % 2), 0.5])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END))


def learn(
    model: Path, path: Path, config: GrpoConfig, turns: Turns, settings: TrainerSettings = SETTINGS, **hooks: Any
) -> bool:
    folder = TrainingFolder(path, {"steps": config.steps})
    try:
        scorer = Scorer(by_first, decode, [END], turns)
        return make_trainer("trl", model, settings).run(
            config, RewardedProblems(PROBLEMS, scorer), folder, Hooks(**hooks)
        )
    finally:
        folder.close()


@pytest.mark.parametrize(
    ("changed", "micro"),
    [
        ({}, 0),
        ({"importance_cap": 0.0, "scale_by_std": False}, 4),
        ({"loss": "ppo", "kl": 0.2, "iterations": 2}, 0),
        ({"loss": "gspo", "turn_weight": 0.0}, 0),
    ],
)
def test_masks_losses_and_weights_are_those_of_the_cpu_trainer(
    model: Path, tmp_path: Path, changed: dict[str, Any], micro: int
) -> None:
    config = msgspec.structs.replace(TURNS, **changed)
    turns = Turns()
    settings = msgspec.structs.replace(SETTINGS, trl=TrlSettings(micro_batch_size=micro))
    assert learn(model, tmp_path / "trl", config, turns, settings)
    client = CpuTrainer(
        model, CpuTrainerConfig(lora=LoraConfig(rank=4, alpha=8, seed=3), dtype="float32", threads=1)
    )
    folder = TrainingFolder(tmp_path / "cpu", {})
    assert grpo(client, PROBLEMS, config, folder, Scorer(by_first, decode, [END], Turns(turns.made)))
    folder.close()
    names = ["grad_norm", "reward", "lost", "turns", "tokens", "groups_used"]
    close(tmp_path / "trl", tmp_path / "cpu", [*names, *(["kl"] if config.kl else ["loss"])])
    # A second turn that stands on its own is read after another token than it was sampled after.
    close(
        tmp_path / "trl", tmp_path / "cpu", ["sampler_kl", *(["importance_cut"] if config.importance_cap else [])]
    )
    assert metrics(tmp_path / "trl")[0]["sampler_kl"] > 0.01
    alike(tmp_path / "trl", tmp_path / "cpu", 2)
    assert_same_samples(tmp_path)


def assert_same_samples(path: Path) -> None:
    trl, cpu = (list(read_rows(path / name / "samples.jsonl")) for name in ("trl", "cpu"))
    assert trl == cpu


class Halves(Turns):
    """Turns whose second half of problems gets equal rewards, so that these rest and others are drawn for them."""

    def _sample(
        self, client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        groups = super()._sample(client, problems, count, params)
        return [
            [msgspec.structs.replace(rollout, text="1", rewards=()) for rollout in group]
            if int(problem.row["question"]) > FLAT_FROM
            else group
            for problem, group in zip(problems, groups, strict=True)
        ]


FLAT_FROM = 7
DRAWN = msgspec.structs.replace(
    TURNS, steps=4, put_aside=1, resample=2, weights={"a": 2.0, "b": 1.0}, save_every=2
)


def mixed(*turns: Turns) -> MixedScorer:
    scorers = {name: Scorer(by_first, decode, [END], own) for name, own in zip("ab", turns, strict=True)}
    return MixedScorer(reward=by_first, decode=decode, stops=[END], scorers=scorers)


def of_two_sources() -> list[Problem]:
    return [msgspec.structs.replace(problem, source="ab"[number % 2]) for number, problem in enumerate(PROBLEMS)]


def test_several_benchmarks_and_pass_rates_are_those_of_the_cpu_trainer(model: Path, tmp_path: Path) -> None:
    """What is drawn, what rests, what is drawn in its place, and what is learnt of it; a stopped run goes on to it."""

    def learn_mixed(name: str, *turns: Turns, **hooks: Any) -> bool:
        folder = TrainingFolder(tmp_path / name, {})
        try:
            trainer = make_trainer("trl", model, SETTINGS)
            return trainer.run(DRAWN, RewardedProblems(of_two_sources(), mixed(*turns)), folder, Hooks(**hooks))
        finally:
            folder.close()

    first, second = Halves(), Halves()
    assert learn_mixed("trl", first, second)
    client = CpuTrainer(
        model, CpuTrainerConfig(lora=LoraConfig(rank=4, alpha=8, seed=3), dtype="float32", threads=1)
    )
    folder = TrainingFolder(tmp_path / "cpu", {})
    assert grpo(client, of_two_sources(), DRAWN, folder, mixed(Turns(first.made), Turns(second.made)))
    folder.close()
    names = [
        "grad_norm",
        "loss",
        "reward",
        "tokens",
        "groups_used",
        "groups_drawn",
        "groups_rejected",
        "put_aside",
    ]
    close(tmp_path / "trl", tmp_path / "cpu", [*names, "came_back", "drawn_reward", "correct/benchmark=a"])
    alike(tmp_path / "trl", tmp_path / "cpu", DRAWN.steps)
    assert_same_samples(tmp_path)
    assert max(row["groups_rejected"] for row in metrics(tmp_path / "trl")) > 0
    assert max(row["put_aside"] for row in metrics(tmp_path / "trl")) > 0

    assert not learn_mixed("stopped", Halves(), Halves(), stop=iter([False, True]).__next__)
    assert learn_mixed("stopped", Halves(), Halves())
    close(tmp_path / "stopped", tmp_path / "trl", names)


def test_single_replies_are_drawn_by_pass_rate_and_equal_rewards_are_told(model: Path, tmp_path: Path) -> None:
    remarks: list[str] = []
    for name, changed in (("aside", {"put_aside": 1}), ("plain", {})):
        config = msgspec.structs.replace(GRPO, steps=22, batch_size=1, group_size=2, max_tokens=1, **changed)
        folder = TrainingFolder(tmp_path / name, {})
        scorer = Scorer(lambda samples: [Judged(0.0, correct=False)] * len(samples), decode, [END])
        assert make_trainer("trl", model, SETTINGS).run(
            config, RewardedProblems(PROBLEMS, scorer), folder, Hooks(remark=remarks.append)
        )
        folder.close()
    told = [remark for remark in remarks if "all rewards of each group were equal (0% correct)" in remark]
    assert len(told) == 2
    rows = metrics(tmp_path / "aside")
    assert max(row["put_aside"] for row in rows) > 0
    assert max(row["came_back"] for row in rows) > 0
    assert all("importance_cut" not in row and row["loss"] == 0 for row in rows)


@pytest.mark.parametrize("changed", [{"algorithm": "rloo"}, {"sampler": "paged"}])
def test_the_baseline_of_others_and_pages_are_refused(
    model: Path, tmp_path: Path, changed: dict[str, Any]
) -> None:
    settings = msgspec.structs.replace(SETTINGS, trl=TrlSettings(**changed))
    with pytest.raises(ConfigError, match=r"one reply per problem.* does not support problems that take several"):
        learn(model, tmp_path / "turns", TURNS, Turns(), settings)
    config = msgspec.structs.replace(GRPO, put_aside=2)
    folder = TrainingFolder(tmp_path / "aside", {})
    data = RewardedProblems(PROBLEMS, Scorer(by_first, decode, [END]))
    with pytest.raises(ConfigError, match=r"does not support \+\+put_aside"):
        make_trainer("trl", model, settings).run(config, data, folder)
    folder.close()
