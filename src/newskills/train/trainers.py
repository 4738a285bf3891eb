# SPDX-License-Identifier: Apache-2.0
"""Trainers that this process drives, one file each behind one protocol; names → makers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.registry import DescribedRegistry
from newskills.train.loops.distill import Distillation, DistillConfig
from newskills.train.loops.dpo import DpoConfig, Pair
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.kto import KtoConfig, LabelledReply
from newskills.train.loops.reward_model import HeldOutPairs, RewardModelConfig
from newskills.train.loops.samples import Problem, Scorer
from newskills.train.loops.sft import SftConfig
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import LoraSettings as LoraSettings  # public here
from newskills.train.settings import TrainerSettings as TrainerSettings
from newskills.train.verbs import Datum


class Trainer(Protocol):
    """A model that learns. Every run has a folder from which it goes on, to the same numbers, after any end."""

    def sft(
        self, examples: Sequence[Datum], config: SftConfig, folder: TrainingFolder, hooks: Hooks = ...
    ) -> bool:
        """Learns examples with the loss cross_entropy; returns whether the run has ended (False: it was stopped).

        Raises DataError for examples that do not fit, TrainingError where training cannot go on.
        """
        ...

    def dpo(self, pairs: Sequence[Pair], config: DpoConfig, folder: TrainingFolder, hooks: Hooks = ...) -> bool:
        """Learns to prefer one reply over another; as `sft`. Raises ConfigError for settings that it lacks."""
        ...

    def grpo(
        self,
        problems: Sequence[Problem],
        config: GrpoConfig,
        folder: TrainingFolder,
        scorer: Scorer,
        hooks: Hooks = ...,
    ) -> bool:
        """Learns from rewarded samples; as `sft`."""
        ...

    def finish(self, folder: TrainingFolder, target: Path) -> None:
        """Write the model of the last checkpoint into `target`, a Hugging Face folder; whole or not at all."""
        ...


@runtime_checkable
class DistillingTrainer(Protocol):
    """A trainer that also learns from a teacher's log-probabilities of its own samples."""

    def distill(
        self, task: Distillation, config: DistillConfig, folder: TrainingFolder, hooks: Hooks = ...
    ) -> bool:
        """As `Trainer.sft`."""
        ...


@runtime_checkable
class KtoTrainer(Protocol):
    """A trainer that also learns from replies that are good or bad, each on its own."""

    def kto(
        self, replies: Sequence[LabelledReply], config: KtoConfig, folder: TrainingFolder, hooks: Hooks = ...
    ) -> bool:
        """As `Trainer.sft`."""
        ...


@runtime_checkable
class RolloutTrainer(Protocol):
    """A trainer whose `grpo` asks `Scorer.rollouts` for its samples, so that problems may take several turns."""

    rolls_out: bool


@runtime_checkable
class RewardModelTrainer(Protocol):
    """A trainer that also makes reward models; `Trainer.finish` then writes one."""

    def reward_model(
        self,
        pairs: Sequence[Pair],
        held_out: HeldOutPairs,
        config: RewardModelConfig,
        folder: TrainingFolder,
        hooks: Hooks = ...,
    ) -> bool:
        """As `Trainer.sft`."""
        ...


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
        "cpu": ("newskills.train.cpu.local:make", TrainerProperties()),
        "tinker": ("newskills.train.tinker.local:make", TrainerProperties()),
        "trl": (
            "newskills.train.trl.local:make",
            TrainerProperties(several_processes=True, quantizes=True, trl_settings=True),
        ),
    },
    usual=TrainerProperties(),
    group="newskills.trainers",
)


def unsupported(backend: str, what: str, able: str) -> ConfigError:
    """For a trainer that lacks `what`; `able`: backends that have it."""
    return ConfigError(f"The trainer {backend} does not support {what}.", hint=f"Use --backend={able}.")


def make_trainer(name: str, base: Path, settings: TrainerSettings) -> Trainer:
    """Make the trainer of this name. Raises UnknownNameError, ConfigError for settings that the trainer cannot follow
    or an extra that is missing."""
    make: TrainerMaker = TRAINERS.get(name)
    return make(base, settings)
