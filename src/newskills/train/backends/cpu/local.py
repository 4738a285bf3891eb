# SPDX-License-Identifier: Apache-2.0
"""The cpu trainer behind the Trainer protocol."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newskills.base.errors import ConfigError, TrainingError
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.method import D, Method
from newskills.train.loops.reward_model import PairScoringClient
from newskills.train.loops.stepping import Hooks, enough_memory
from newskills.train.loops.trainer import LoopTrainer
from newskills.train.memory import TELLING, machine_memory, needed_line
from newskills.train.settings import PROJECTIONS, TrainerSettings
from newskills.train.shape import model_shape

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
        if unsupported := [name for wanted, name in lacks if wanted] + settings.trl.changed_keys():
            raise ConfigError(
                f"The cpu trainer does not support {', '.join(unsupported)}.", hint="Use --backend=trl."
            )
        super().__init__(lambda: nullcontext(self._make_trainer()))
        self._base, self._settings = base, settings

    def run(
        self,
        method: Method[D],
        data: D,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        """Train by `method`, as `newskills.train.trainers.Trainer.run`, and say before what memory it needs, where that
        is much."""
        if not folder.finished and (remark := self._memory(method, data)) is not None:
            hooks.remark(remark)
        return super().run(method, data, folder, hooks)

    def _memory(self, method: Method[D], data: D) -> str | None:
        """Return what to say of the memory; None where it is little, or not known."""
        from newskills.train.backends.cpu.memory import cpu_parts, largest_part, stored_bytes
        from newskills.train.backends.cpu.trainer import dtype_of

        shape, part = model_shape(self._base), largest_part(method, data)
        if shape is None or part is None:
            return None
        value, rank = dtype_of(self._settings.dtype).itemsize, self._settings.lora.rank
        needed, capacity = cpu_parts(shape, part, rank, value, stored_bytes(self._base)), machine_memory()
        text = f"This training {needed_line(needed, capacity, 'machine')}."
        if sum(needed.values()) > capacity:
            return f"{text} It may run out of memory. {LESS}"
        return text if sum(needed.values()) >= TELLING else None

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

    def _make_trainer(self) -> CpuTrainer:
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
