# SPDX-License-Identifier: Apache-2.0
"""Trainers that this process drives, one file each behind one protocol; names → makers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, Protocol, runtime_checkable

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.registry import Registry
from newskills.train.loops.distill import Distillation, DistillConfig
from newskills.train.loops.dpo import DpoConfig, Pair
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.kto import KtoConfig, LabelledReply
from newskills.train.loops.reward_model import HeldOutPairs, RewardModelConfig
from newskills.train.loops.samples import Problem, Scorer
from newskills.train.loops.sft import SftConfig
from newskills.train.loops.stepping import Hooks
from newskills.train.trl.settings import TrlSettings
from newskills.train.verbs import Datum

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class LoraSettings(Struct, frozen=True, kw_only=True):
    """The pairs that are trained (https://arxiv.org/abs/2106.09685)."""

    rank: Annotated[int, Meta(ge=1, description="rank of the LoRA pairs")] = 16
    alpha: Annotated[float, Meta(gt=0, description="scale: the LoRA product is multiplied by alpha / rank")] = 32.0
    dropout: Annotated[
        float, Meta(ge=0, lt=1, description="dropout: share of the input that is left out (trl)")
    ] = 0.0
    targets: Annotated[tuple[str, ...], Meta(description="projections that get a LoRA pair")] = PROJECTIONS
    seed: Annotated[int, Meta(description="random seed of the initial values")] = 0


class TrainerSettings(Struct, frozen=True, kw_only=True):
    """How this machine computes. Another number of threads changes the last digits of the results."""

    weights: Annotated[
        Literal["lora", "full"], Meta(description="what is trained: LoRA pairs, or all weights (trl)")
    ] = "lora"
    lora: LoraSettings = LoraSettings()
    dtype: Annotated[str, Meta(description="number format of the frozen weights: auto, bfloat16, float32")] = (
        "auto"
    )
    threads: Annotated[int, Meta(ge=0, description="threads of the trainer; 0 = one per core")] = 0
    trl: TrlSettings = TrlSettings()


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
        """Writes the model of the last checkpoint into `target`, a Hugging Face folder; whole or not at all."""
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

TRAINERS = Registry(
    "trainer",
    {
        "cpu": "newskills.train.cpu.local:make",
        "tinker": "newskills.train.tinker.local:make",
        "trl": "newskills.train.trl.local:make",
    },
    group="newskills.trainers",
)


def unsupported(backend: str, what: str, able: str) -> ConfigError:
    """For a trainer that lacks `what`; `able`: backends that have it."""
    return ConfigError(f"The trainer {backend} does not support {what}.", hint=f"Use --backend={able}.")


def make_trainer(name: str, base: Path, settings: TrainerSettings) -> Trainer:
    """Raises UnknownNameError, ConfigError for settings that the trainer cannot follow or an extra that is missing."""
    make: TrainerMaker = TRAINERS.get(name)
    return make(base, settings)
