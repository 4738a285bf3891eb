# SPDX-License-Identifier: Apache-2.0
"""A Tinker service behind the Trainer protocol: our loops here, the weights there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from newskills.base.errors import ConfigError, TrainingError
from newskills.base.store import atomic_folder
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.trainer import LoopTrainer
from newskills.train.settings import LoraSettings, TrainerSettings

if TYPE_CHECKING:
    from newskills.train.backends.tinker.client import TinkerClient

NAME = "TINKER_BASE_MODEL"
"""Variable with the model's name at the service, where that is not its folder here."""
ADAPTER = "adapter"
"""Folder of the fetched pairs, below the run's."""


class TinkerTrainer(LoopTrainer):
    def __init__(self, base: Path, settings: TrainerSettings) -> None:
        """Check the settings and keep them. Raises ConfigError for settings that a service cannot be told, AuthError
        without TINKER_API_KEY."""
        usual, lora = LoraSettings(), settings.lora
        lacks = [
            (settings.weights != "lora", "trainer.weights=full"),
            (lora.dropout != usual.dropout, "trainer.lora.dropout"),
            (lora.alpha != usual.alpha, "trainer.lora.alpha"),
            (set(lora.targets) != set(usual.targets), "trainer.lora.targets"),
        ]
        if unsupported := [name for wanted, name in lacks if wanted] + settings.trl.changed_keys():
            raise ConfigError(
                f"A Tinker service does not support {', '.join(unsupported)}.", hint="Use --backend=trl."
            )
        super().__init__(self._make_client)
        self._base, self._lora = base, lora

    def finish(self, folder: TrainingFolder, target: Path) -> None:
        """Fetch the pairs from the service and merge them.

        Raises TrainingError where the service does not give them away: the sentence says where they are.
        """
        from newskills.train.convert.merge import copy_model, merge_lora

        if folder.last is None:
            raise TrainingError("The training ended without a checkpoint.")
        if folder.unchanged:
            copy_model(self._base, target)
            return
        state, adapter = folder.last.state_path, folder.path / ADAPTER
        try:
            if not adapter.is_dir():
                with self._make_client() as client, atomic_folder(adapter) as new:
                    client.load_state(state)
                    client.fetch(folder.last.name, new)
            merge_lora(self._base, adapter, target)
        except TrainingError as error:
            raise TrainingError(
                "The training is complete, but the model could not be downloaded; it is at the service as "
                f"{state}: {error}"
            ) from error

    def _name(self) -> str:
        return os.environ.get(NAME) or str(self._base.absolute())

    def _make_client(self) -> TinkerClient:
        from newskills.train.backends.tinker.client import TinkerClient, service_from

        return TinkerClient(service_from(os.environ, self._name(), self._lora.rank, self._lora.seed))


def make(base: Path, settings: TrainerSettings) -> TinkerTrainer:
    return TinkerTrainer(base, settings)
