# SPDX-License-Identifier: Apache-2.0
"""The trl trainer behind the Trainer protocol."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from newskills.base.errors import ConfigError, TrainingError
from newskills.base.store import atomic_folder
from newskills.train.loops.dpo import DpoConfig, Pair
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.kto import KtoConfig, LabelledReply
from newskills.train.loops.reward_model import HeldOutPairs, RewardModelConfig
from newskills.train.loops.samples import Problem, Scorer
from newskills.train.loops.sft import SftConfig
from newskills.train.loops.stepping import Hooks, enough_memory
from newskills.train.settings import TrainerSettings
from newskills.train.verbs import Datum

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
}
"""A model folder is complete, so nothing is fetched; and nothing is told to others."""


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

    def sft(
        self,
        examples: Sequence[Datum],
        config: SftConfig,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        if folder.finished:
            return True
        with self._ready():
            from newskills.train.trl.model import TrainingTask
            from newskills.train.trl.sft import sft

            return sft(TrainingTask(self._base, self._settings, folder, hooks), examples, config)

    def dpo(
        self,
        pairs: Sequence[Pair],
        config: DpoConfig,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        """Whether all steps are done. Raises ConfigError for settings of SFT alone, DataError, TrainingError."""
        if folder.finished:
            return True
        self._check_packing("DPO cannot pack pairs.")
        with self._ready():
            from newskills.train.trl.dpo import dpo
            from newskills.train.trl.model import TrainingTask

            return dpo(TrainingTask(self._base, self._settings, folder, hooks), pairs, config)

    def kto(
        self,
        replies: Sequence[LabelledReply],
        config: KtoConfig,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        """As `newskills.train.trainers.KtoTrainer`."""
        if folder.finished:
            return True
        self._check_packing("KTO cannot pack replies.")
        with self._ready():
            from newskills.train.trl.kto import kto
            from newskills.train.trl.model import TrainingTask

            return kto(TrainingTask(self._base, self._settings, folder, hooks), replies, config)

    def reward_model(
        self,
        pairs: Sequence[Pair],
        held_out: HeldOutPairs,
        config: RewardModelConfig,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        """As `newskills.train.trainers.RewardModelTrainer`. Raises ConfigError for ++trainer.weights=full."""
        if folder.finished:
            return True
        self._check_packing("Reward models cannot pack pairs.")
        if self._settings.weights == "full":
            raise ConfigError(
                "Reward models are trained with LoRA pairs.", hint="Leave out ++trainer.weights=full."
            )
        with self._ready():
            from newskills.train.trl.model import TrainingTask
            from newskills.train.trl.reward_model import reward_model

            task = TrainingTask(self._base, self._settings, folder, hooks)
            return reward_model(task, pairs, held_out, config)

    def _check_packing(self, sentence: str) -> None:
        """Raise ConfigError with `sentence` where the settings pack sequences."""
        if self._settings.trl.packing:
            raise ConfigError(sentence, hint="Leave out ++trainer.trl.packing.")

    def grpo(
        self,
        problems: Sequence[Problem],
        config: GrpoConfig,
        folder: TrainingFolder,
        scorer: Scorer,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        """Whether all steps are done. Raises ConfigError for settings that TRL lacks, DataError, TrainingError."""
        if folder.finished:
            return True
        with self._ready():
            from newskills.train.trl.grpo import grpo
            from newskills.train.trl.model import TrainingTask

            return grpo(TrainingTask(self._base, self._settings, folder, hooks), problems, config, scorer)

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
        with _variables(QUIET), self._loaded():
            yield

    @contextmanager
    def _loaded(self) -> Iterator[None]:
        import datasets
        import torch
        import transformers

        from newskills.train.trl.model import check

        datasets.disable_progress_bars()
        transformers.utils.logging.disable_progress_bar()
        check(self._settings)
        if self._settings.threads:
            torch.set_num_threads(self._settings.threads)
        with warnings.catch_warnings(), enough_memory(LESS):
            # transformers and TRL warn each other of options that no user of ours has set.
            warnings.simplefilter("ignore", FutureWarning)
            yield


CONFIGS = ("config.json", "model.safetensors.index.json")
"""Files of a checkpoint of all weights that belong to the model; the others are those of the model it came from."""


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Variables of the environment that nobody has set, for as long as this lasts."""
    missing = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


def make(base: Path, settings: TrainerSettings) -> TrlTrainer:
    return TrlTrainer(base, settings)
