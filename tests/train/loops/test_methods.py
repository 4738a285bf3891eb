# SPDX-License-Identifier: Apache-2.0
"""Methods and trainers: which trainer runs which method, and a method of one's own that needs nothing but its class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.train.preferences import SETTINGS, metrics
from tests.train.tiny import tiny_folder

from newskills.base.errors import ConfigError
from newskills.train.backends.tinker.local import TinkerTrainer
from newskills.train.backends.trl.local import TRL_METHODS
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.method import METHODS, Method, MethodSettings
from newskills.train.loops.sft import example
from newskills.train.loops.stepping import Hooks, TrainingSteps
from newskills.train.settings import Schedule, TrainerSettings
from newskills.train.trainers import Trainer, check_foreign, check_runs, make_trainer
from newskills.train.verbs import Datum, TrainingClient

PAGE = Path(__file__).parents[3] / "docs/training.md"


def trainers() -> dict[str, Trainer]:
    return {
        "cpu": make_trainer("cpu", Path("model"), SETTINGS),
        "tinker": TinkerTrainer(Path("m"), TrainerSettings()),
    }


def test_the_page_says_which_trainer_runs_which_method() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert sorted(name for name, *_ in rows) == sorted(METHODS.names())
    own = trainers()
    for name, *cells in rows:
        method: type[Method[Any]] = METHODS.get(name)
        assert method.name == name
        says = dict(zip(("cpu", "trl", "tinker"), (cell.strip() != "no" for cell in cells), strict=True))
        runs = {backend: trainer.runs(method) for backend, trainer in own.items()} | {"trl": name in TRL_METHODS}
        assert says == runs, name


def test_a_trainer_says_in_a_sentence_what_it_cannot_do() -> None:
    method = METHODS.get("reward_model")
    with pytest.raises(ConfigError, match="The trainer tinker does not support reward models") as refused:
        check_runs("tinker", trainers()["tinker"], method, "cpu or trl")
    assert refused.value.hint == "Use --backend=cpu or trl."
    with pytest.raises(ConfigError, match="The trainer NeMo-RL does not support DPO; it has ns nemo_rl sft or"):
        check_foreign("NeMo-RL", METHODS.get("dpo"), "cpu")
    with pytest.raises(ConfigError, match="runs GRPO on clusters, by a command of its own") as refused:
        check_foreign("nemo_rl", METHODS.get("grpo"), "cpu")
    assert refused.value.hint == "Use: ns nemo_rl grpo --cluster=NAME"


class UnlikelihoodConfig(MethodSettings, frozen=True, kw_only=True):
    """Make sequences unlikely: a method as a user writes it."""

    name: ClassVar[str] = "unlikelihood"
    title: ClassVar[str] = "unlikelihood training"

    steps: int
    learning_rate: float = 0.01
    schedule: Schedule = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    save_every: int = 2
    seed: int = 0

    def train(self, client: TrainingClient, data: Sequence[Datum], folder: TrainingFolder, hooks: Hooks) -> bool:
        with TrainingSteps(client, self, folder, hooks) as steps:
            for step in steps:
                against = [
                    Datum(tokens=row.tokens, targets=row.targets, weights=[-value for value in row.weights or ()])
                    for row in data
                ]
                output = client.forward_backward(against, "cross_entropy")
                steps.done({"likelihood": output.loss, **client.optim_step(self.adam(step))})
        return steps.ended


def test_a_method_of_ones_own_runs_stops_and_resumes(tmp_path: Path) -> None:
    model = tiny_folder(tmp_path / "model")
    rows = [example([1, 2, token], [token + 1, token + 2]) for token in range(3, 8)]

    def learn(path: Path, **hooks: Any) -> bool:
        folder = TrainingFolder(path, {})
        try:
            return make_trainer("cpu", model, SETTINGS).run(
                UnlikelihoodConfig(steps=6), rows, folder, Hooks(**hooks)
            )
        finally:
            folder.close()

    assert learn(tmp_path / "whole")
    count = iter(range(100))
    assert not learn(tmp_path / "cut", stop=lambda: next(count) == 2)
    assert [row["step"] for row in metrics(tmp_path / "cut")] == [1, 2, 3]
    assert learn(tmp_path / "cut")
    assert metrics(tmp_path / "cut") == metrics(tmp_path / "whole")
    values = [row["likelihood"] for row in metrics(tmp_path / "whole")]
    assert values[-1] < values[0]


def test_a_method_is_found_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("from tests.train.loops.test_methods import UnlikelihoodConfig as Own\n")
    method = METHODS.get(f"{file}::Own")
    assert trainers()["cpu"].runs(method)
    with pytest.raises(ConfigError, match="does not support unlikelihood training"):
        check_runs("trl", _Nothing(), method, "cpu or tinker")


class _Nothing:
    def runs(self, method: type[Method[Any]]) -> bool:
        return method.name in TRL_METHODS

    def run(self, method: Method[Any], data: Any, folder: TrainingFolder, hooks: Hooks = Hooks()) -> bool:  # noqa: B008
        raise NotImplementedError

    def finish(self, folder: TrainingFolder, target: Path) -> None:
        raise NotImplementedError
