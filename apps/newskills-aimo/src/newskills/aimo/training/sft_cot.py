# SPDX-License-Identifier: Apache-2.0
"""The stage cot from Python, under the names of the recipe that this one replaces.

>>> SFTCoTConfig(lora_r=8, max_train_samples=100).stage().lora_rank
8
"""

from __future__ import annotations

from typing import ClassVar

from newskills.aimo.training.sft import SFTConfig, SFTTrainer
from newskills_aimo.recipe.settings import StageName


class SFTCoTConfig(SFTConfig, frozen=True, kw_only=True):
    """Solutions in words."""

    STAGE: ClassVar[StageName] = "cot"

    model_name_or_path: str = "Qwen/Qwen2.5-14B"
    output_dir: str = "outputs/sft_cot"
    lora_r: int = 64
    lora_alpha: float = 128.0
    num_train_epochs: float = 3.0
    per_device_train_batch_size: int = 4
    gradient_accumulation_steps: int = 8
    learning_rate: float = 2e-5
    max_seq_length: int = 4096
    save_steps: int = 500
    eval_steps: int = 500


class SFTCoTTrainer(SFTTrainer):
    """Trains on solutions in words."""

    def __init__(self, config: SFTCoTConfig) -> None:
        """Translate `config` into a stage. Raises ConfigError for what the trainers here do not do."""
        super().__init__(config)
