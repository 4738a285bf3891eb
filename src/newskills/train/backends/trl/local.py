# SPDX-License-Identifier: Apache-2.0
"""The trl trainer behind the Trainer protocol."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, TrainingError
from newskills.base.registry import load_attr
from newskills.base.store import atomic_folder
from newskills.train.backends.trl.settings import chosen_sampler
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.method import D, Method
from newskills.train.loops.stepping import Hooks, enough_memory
from newskills.train.settings import TrainerSettings

PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets")
LESS = (
    "Lower ++trainer.trl.micro_batch_size or ++max_tokens, set ++trainer.trl.gradient_checkpointing=true, or "
    "leave out long sequences."
)
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TQDM_DISABLE": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
}
"""A model folder is complete, so nothing is fetched; and nothing is told to others."""


class TrlMethod(Struct, frozen=True, kw_only=True):
    """How TRL does a method: `function` gets the task, its data and the method, and returns whether the run has ended.

    cannot_pack, only_lora  the sentence for settings that it lacks; empty: it has them
    """

    function: str
    cannot_pack: str = ""
    only_lora: str = ""


TRL_METHODS = {
    "dpo": TrlMethod(function="newskills.train.backends.trl.dpo::train_dpo", cannot_pack="DPO cannot pack pairs."),
    "grpo": TrlMethod(function="newskills.train.backends.trl.grpo::train_grpo"),
    "kto": TrlMethod(
        function="newskills.train.backends.trl.kto::train_kto", cannot_pack="KTO cannot pack replies."
    ),
    "reward_model": TrlMethod(
        function="newskills.train.backends.trl.reward_model::reward_model",
        cannot_pack="Reward models cannot pack pairs.",
        only_lora="Reward models are trained with LoRA pairs.",
    ),
    "rloo": TrlMethod(function="newskills.train.backends.trl.grpo::train_grpo"),
    "sft": TrlMethod(function="newskills.train.backends.trl.sft::train_sft"),
}
"""Name of a method → how TRL does it; the others need a trainer that serves the verbs."""


class TrlTrainer:
    rolls_out = True

    def __init__(self, base: Path, settings: TrainerSettings) -> None:
        """Check the packages and keep the settings. Raises ConfigError where a package is missing."""
        if missing := [name for name in PACKAGES if find_spec(name) is None]:
            raise ConfigError(
                f"The trl trainer needs {', '.join(missing)}, which this environment does not have.",
                hint="Run: pip install 'newskills[trl]' (without a GPU, install torch from its CPU index first).",
            )
        self._base, self._settings = base, settings

    def runs(self, method: type[Method[Any]]) -> bool:
        """Return whether TRL has this method."""
        return method.name in TRL_METHODS

    def run(
        self,
        method: Method[D],
        data: D,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        """Train by `method`, whose loss here is TRL's, as `newskills.train.trainers.Trainer.run`.

        Raises ConfigError for settings that TRL lacks with this method, DataError, TrainingError.
        """
        if folder.finished:
            return True
        own = TRL_METHODS[method.name]
        if self._settings.trl.packing and own.cannot_pack:
            raise ConfigError(own.cannot_pack, hint="Leave out ++trainer.trl.packing.")
        if self._settings.trl.context_parallel > 1 and method.name != "sft":
            raise ConfigError(
                f"TRL has no context parallelism for {method.title}.",
                hint="Leave out ++trainer.trl.context_parallel.",
            )
        if self._settings.weights == "full" and own.only_lora:
            raise ConfigError(own.only_lora, hint="Leave out ++trainer.weights=full.")
        with self._ready():
            import torch

            from newskills.train.backends.trl.model import TrainingTask

            chosen = chosen_sampler(self._settings.trl, gpu=torch.cuda.is_available())
            settings = replace(self._settings, trl=chosen)
            ended: bool = load_attr(own.function, "training with TRL")(
                TrainingTask(self._base, settings, folder, hooks), data, method
            )
            return ended

    def finish(self, folder: TrainingFolder, target: Path) -> None:
        """Write the trained model to `target`. Raises TrainingError where no checkpoint was written."""
        from newskills.train.convert.merge import copy_model, merge_lora
        from newskills.train.tensors import check_files

        if folder.last is None:
            raise TrainingError("The training ended without a checkpoint.")
        if folder.unchanged:
            copy_model(self._base, target)
            return
        state = Path(folder.state_of(folder.last))
        if self._settings.weights == "lora":
            merge_lora(self._base, state, target)
            return
        with atomic_folder(target) as new:
            kept = [path for path in state.iterdir() if path.suffix == ".safetensors" or path.name in CONFIGS]
            others = [
                path for path in self._base.iterdir() if path.suffix in (".json", ".jinja", ".txt", ".model")
            ]
            for path in [*(file for file in others if "index" not in file.name), *kept]:
                shutil.copyfile(path, new / path.name)
            check_files(new)

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """Raise TrainingError where memory runs out inside."""
        with _set_variables(QUIET), self._prepare_libraries():
            yield

    @contextmanager
    def _prepare_libraries(self) -> Iterator[None]:
        import datasets
        import torch
        import transformers

        from newskills.train.backends.trl.model import check_trl_settings

        datasets.disable_progress_bars()
        transformers.utils.logging.disable_progress_bar()
        check_trl_settings(self._settings)
        if self._settings.threads:
            torch.set_num_threads(self._settings.threads)
        with warnings.catch_warnings(), enough_memory(LESS):
            # transformers and TRL warn each other of options that no user of ours has set.
            warnings.simplefilter("ignore", FutureWarning)
            yield


CONFIGS = ("config.json", "model.safetensors.index.json")
"""Files of a checkpoint of all weights that belong to the model; the others are those of the model it came from."""


@contextmanager
def _set_variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment that nobody has set, for as long as this lasts."""
    missing = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


def make(base: Path, settings: TrainerSettings) -> TrlTrainer:
    return TrlTrainer(base, settings)
