# SPDX-License-Identifier: Apache-2.0
"""What a way to train is: its settings, what it learns from, and its loop over the verbs.

A method is one class in one file of this folder (`sft.py` is the shortest) and a row in `METHODS`. Every trainer that
serves the verbs it `needs` can then run it: `trainer.run(SftConfig(steps=20), examples, folder)`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar

from msgspec import Struct

from newskills.base.registry import Registry
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.stepping import Hooks, Steps, adam_at
from newskills.train.verbs import AdamParams, TrainingClient

D = TypeVar("D")
DataT = TypeVar("DataT", contravariant=True)


class Method(Steps, Protocol[DataT]):
    """A way to train, with its settings.

    name    as in `METHODS`
    title   what sentences call it
    needs   the protocol of the weights that it trains: `TrainingClient`, or one with more verbs
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[type]

    def train(self, client: Any, data: DataT, folder: TrainingFolder, hooks: Hooks) -> bool:
        """Train from the last checkpoint of `folder` on; return whether the run has ended (False: it was stopped).

        Raises DataError for data that does not fit, ConfigError for settings that do not go together, TrainingError
        where training cannot go on (the last checkpoint stays).
        """
        ...


class MethodSettings(Struct, frozen=True, kw_only=True):
    """What the settings of our own methods share."""

    needs: ClassVar[type] = TrainingClient

    def adam(self: Steps, step: int) -> AdamParams:
        """Return the optimizer's settings of a step (from 0); `TrainingSteps.adam` also knows whether the run has gone
        back to earlier weights."""
        return adam_at(self, step)


METHODS = Registry(
    "training method",
    {
        "distill": "newskills.train.loops.distill:DistillConfig",
        "dpo": "newskills.train.loops.dpo:DpoConfig",
        "grpo": "newskills.train.loops.grpo:GrpoConfig",
        "kto": "newskills.train.loops.kto:KtoConfig",
        "reward_model": "newskills.train.loops.reward_model:RewardModelConfig",
        "rloo": "newskills.train.loops.rloo:RlooConfig",
        "sft": "newskills.train.loops.sft:SftConfig",
    },
    group="newskills.methods",
)
"""Name of a method → the class of its settings."""
