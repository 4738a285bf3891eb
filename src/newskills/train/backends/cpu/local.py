# SPDX-License-Identifier: Apache-2.0
"""The cpu trainer behind the Trainer protocol."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newskills.base.errors import ConfigError, TrainingError
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.method import Method
from newskills.train.loops.reward_model import PairScoringClient
from newskills.train.loops.stepping import enough_memory
from newskills.train.loops.trainer import LoopTrainer
from newskills.train.settings import PROJECTIONS, TrainerSettings

if TYPE_CHECKING:
    from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig

LESS = "Use a smaller model, or ++trainer.dtype=bfloat16."


class CpuLocal(LoopTrainer):
    serves = (*LoopTrainer.serves, PairScoringClient)

    def __init__(self, base: Path, settings: TrainerSettings) -> None:
        """Check the settings and keep them. Raises ConfigError for settings that this trainer lacks."""
        lora = settings.lora
        lacks = [
            (settings.weights != "lora", "trainer.weights=full"),
            (lora.dropout != 0, "trainer.lora.dropout"),
            (set(lora.targets) != set(PROJECTIONS), "trainer.lora.targets"),
        ]
        if unsupported := [name for wanted, name in lacks if wanted] + settings.trl.changed():
            raise ConfigError(
                f"The cpu trainer does not support {', '.join(unsupported)}.", hint="Use --backend=trl."
            )
        super().__init__(lambda: nullcontext(self._made()))
        self._base, self._settings = base, settings

    def finish(self, folder: TrainingFolder, target: Path) -> None:
        """Write the model with its adapter merged to `target`.

        Raises TrainingError where no checkpoint was written.
        """
        from newskills.train.convert.merge import copy_model, merge_lora

        if folder.last is None:
            raise TrainingError("The training ended without a checkpoint.")
        if folder.unchanged:
            copy_model(self._base, target)
            return
        merge_lora(self._base, Path(folder.state_of(folder.last)), target)

    def client(self, method: type[Method[Any]]) -> AbstractContextManager[Any]:
        """Return the model, with a head for rewards where the method needs one."""
        if method.needs is not PairScoringClient:
            return super().client(method)
        from newskills.train.backends.cpu.reward import CpuRewardModel

        with enough_memory(LESS):
            return nullcontext(CpuRewardModel(self._base, self._config()))

    def _made(self) -> CpuTrainer:
        from newskills.train.backends.cpu.trainer import CpuTrainer

        with enough_memory(LESS):
            return CpuTrainer(self._base, self._config())

    def _config(self) -> CpuTrainerConfig:
        from newskills.train.backends.cpu.llama import LoraConfig
        from newskills.train.backends.cpu.trainer import CpuTrainerConfig

        lora = LoraConfig(
            rank=self._settings.lora.rank, alpha=self._settings.lora.alpha, seed=self._settings.lora.seed
        )
        return CpuTrainerConfig(lora=lora, dtype=self._settings.dtype, threads=self._settings.threads)


def make(base: Path, settings: TrainerSettings) -> CpuLocal:
    return CpuLocal(base, settings)
