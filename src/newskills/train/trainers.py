# SPDX-License-Identifier: Apache-2.0
"""Trainers that this process drives, one file each behind one protocol; names → makers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.registry import DescribedRegistry, fold
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.method import D, Method
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import LoraSettings as LoraSettings  # public here
from newskills.train.settings import TrainerSettings as TrainerSettings


class Trainer(Protocol):
    """A model that learns. Every run has a folder from which it goes on, to the same numbers, after any end."""

    def runs(self, method: type[Method[Any]]) -> bool:
        """Return whether this trainer can run the method."""
        ...

    def run(self, method: Method[D], data: D, folder: TrainingFolder, hooks: Hooks = ...) -> bool:
        """Train on `data` by a method that it runs; return whether the run has ended (False: it was stopped).

        Raises ConfigError for settings that it lacks, DataError for data that does not fit, TrainingError where
        training cannot go on.
        """
        ...

    def finish(self, folder: TrainingFolder, target: Path) -> None:
        """Write the model of the last checkpoint into `target`, a Hugging Face folder; whole or not at all."""
        ...


@runtime_checkable
class RolloutTrainer(Protocol):
    """A trainer whose GRPO asks `Scorer.rollouts` for its samples, so that problems may take several turns."""

    rolls_out: bool


TrainerMaker = Callable[[Path, TrainerSettings], Trainer]
"""(Hugging Face folder of the model, settings) → a trainer. Cheap: weights are read when training begins."""


class TrainerProperties(Struct, frozen=True, kw_only=True):
    """What is particular about a trainer.

    several_processes  a launcher may start it as several processes, which train together
    quantizes          frozen weights may be held in 4 bits
    trl_settings       it follows the settings below `trainer.trl`
    """

    several_processes: bool = False
    quantizes: bool = False
    trl_settings: bool = False


TRAINERS = DescribedRegistry(
    "trainer",
    {
        "cpu": ("newskills.train.backends.cpu.local:make", TrainerProperties()),
        "tinker": ("newskills.train.backends.tinker.local:make", TrainerProperties()),
        "trl": (
            "newskills.train.backends.trl.local:make",
            TrainerProperties(several_processes=True, quantizes=True, trl_settings=True),
        ),
    },
    usual=TrainerProperties(),
    group="newskills.trainers",
)


FOREIGN = {
    "nemo_rl": {"sft": "ns nemo_rl sft", "grpo": "ns nemo_rl grpo"},
    "verl": {"ppo": "ns verl ppo"},
    "megatron_lm": {"sft": "ns megatron_lm train"},
}
"""Trainers that only run on clusters, by commands of their own: method → command."""


def check_foreign(name: str, method: type[Method[Any]], able: str) -> None:
    """Raise ConfigError for a trainer that has commands of its own, and say which one, or that it lacks the method."""
    commands = FOREIGN.get(fold(name))
    if commands is None:
        return
    if method.name in commands:
        raise ConfigError(
            f"The trainer {name} runs {method.title} on clusters, by a command of its own.",
            hint=f"Use: {commands[method.name]} --cluster=NAME",
        )
    others = " or ".join(commands.values())
    raise ConfigError(
        f"The trainer {name} does not support {method.title}; it has {others}.", hint=f"Use --backend={able}."
    )


def make_trainer(name: str, base: Path, settings: TrainerSettings) -> Trainer:
    """Make the trainer of this name. Raises UnknownNameError, ConfigError for settings that the trainer cannot follow
    or an extra that is missing."""
    make: TrainerMaker = TRAINERS.get(name)
    return make(base, settings)


def check_runs(name: str, trainer: Trainer, method: type[Method[Any]], able: str) -> None:
    """Raise ConfigError where the trainer `name` cannot run `method`; `able` names those that can."""
    if missing := [function for function in ("runs", "run", "finish") if not hasattr(trainer, function)]:
        raise ConfigError(
            f"--backend={name} is not a trainer: it lacks {', '.join(missing)}.", hint="See docs/training.md."
        )
    if not trainer.runs(method):
        raise ConfigError(f"The trainer {name} does not support {method.title}.", hint=f"Use --backend={able}.")
