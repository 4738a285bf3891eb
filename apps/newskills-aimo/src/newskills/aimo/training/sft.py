# SPDX-License-Identifier: Apache-2.0
"""What the two stages of fine-tuning have in common, under the names of the recipe that this one replaces."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from newskills.aimo.training.staged import train_stage
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills_aimo.recipe.settings import PROJECTIONS, TESTS, AimoConfig, SftStage, StageName


class SFTConfig(Struct, frozen=True, kw_only=True):
    """Settings of a stage, under their old names; `stage()` has them under ours."""

    STAGE: ClassVar[StageName]

    model_name_or_path: str
    output_dir: str
    trust_remote_code: bool = False
    use_flash_attention: bool = False
    use_lora: bool = True
    lora_r: int
    lora_alpha: float
    lora_dropout: float = 0.05
    lora_target_modules: tuple[str, ...] = PROJECTIONS
    load_in_4bit: bool = True
    num_train_epochs: float
    per_device_train_batch_size: int
    gradient_accumulation_steps: int
    learning_rate: float
    weight_decay: float = 0.01
    warmup_ratio: float = 0.03
    lr_scheduler_type: str = "cosine"
    max_seq_length: int
    logging_steps: int = 10
    save_steps: int
    eval_steps: int
    save_total_limit: int = 3
    report_to: str = "tensorboard"
    run_name: str | None = None
    max_train_samples: int | None = None
    validation_split: float = 0.01
    force_cpu: bool = False
    decontaminate: tuple[str, ...] = TESTS

    def stage(self) -> SftStage:
        """Return the same as a stage of `ns aimo train`. Raises ConfigError for what the trainers here do not do."""
        if not self.use_lora:
            raise ConfigError("use_lora=False: the stages train LoRA pairs.", hint="ns sft trains all weights.")
        if self.trust_remote_code:
            raise ConfigError("trust_remote_code=True: code of a downloaded model is never run.")
        usual = AimoConfig().stage(self.STAGE)
        settings = {**msgspec.structs.asdict(usual), **self._settings()}
        try:
            stage = msgspec.convert(settings, type(usual))
        except msgspec.ValidationError as error:
            raise ConfigError(f"{type(self).__name__}: {error}.") from error
        assert isinstance(stage, SftStage)
        return stage

    def _settings(self) -> Mapping[str, Any]:
        return {
            "start": self.model_name_or_path,
            "output": self.output_dir,
            "lora_rank": self.lora_r,
            "lora_alpha": self.lora_alpha,
            "lora_dropout": self.lora_dropout,
            "lora_modules": self.lora_target_modules,
            "quantisation": "nf4" if self.load_in_4bit else "none",
            "attention": "flash_attention_2" if self.use_flash_attention else "",
            "epochs": self.num_train_epochs,
            "batch_size": self.per_device_train_batch_size,
            "accumulation": self.gradient_accumulation_steps,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "warmup": self.warmup_ratio,
            "schedule": self.lr_scheduler_type,
            "max_length": self.max_seq_length,
            "logging_steps": self.logging_steps,
            "save_steps": self.save_steps,
            "eval_steps": self.eval_steps,
            "keep": self.save_total_limit,
            "max_samples": self.max_train_samples,
            "validation": self.validation_split,
        }


class SFTTrainer:
    """Trains on solutions. `output_dir` is as `ns aimo train` leaves it; the same call goes on there."""

    def __init__(self, config: SFTConfig) -> None:
        """Translate `config` into a stage. Raises ConfigError for what the trainers here do not do."""
        self.config, self._stage = config, config.stage()
        self.model: Path | None = None

    def train(self, train_dataset: Iterable[Row], eval_dataset: Iterable[Row] | None = None) -> Path:
        """Return the folder of the trained model, its LoRA pairs merged.

        Rows are those of NuminaMath, or of any set that `ns prepare_training_data` knows, or have `problem` and
        `generation`. Raises ConfigError for held-out rows of one's own, NewskillsError.
        """
        if eval_dataset is not None:
            raise ConfigError(
                "eval_dataset cannot be given: a share of the training rows is held out.",
                hint="Set validation_split, a share from 0 to 1.",
            )
        config = self.config
        self.model = train_stage(
            config.STAGE,
            self._stage,
            train_dataset,
            decontaminate=config.decontaminate,
            report_to=config.report_to,
            run_name=config.run_name or "",
            force_cpu=config.force_cpu,
        )
        return self.model

    def save_merged_model(self, output_path: str) -> None:
        """Copy the trained model, whose LoRA pairs are merged, to a folder. Raises ConfigError before training."""
        if self.model is None:
            raise ConfigError("There is no trained model yet: call train() first.")
        shutil.copytree(self.model, output_path, dirs_exist_ok=True)
