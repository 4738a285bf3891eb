# SPDX-License-Identifier: Apache-2.0
"""The stage tir from Python, under the names of the recipe that this one replaces.

>>> extract_code_blocks("So\\n```python\\nprint(2)\\n```\\n```output\\n2\\n```")
['print(2)']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.aimo.training.sft import SFTConfig, SFTTrainer
from newskills_aimo.recipe.programs import find_code_blocks
from newskills_aimo.recipe.settings import StageName


class SFTTIRConfig(SFTConfig, frozen=True, kw_only=True):
    """Solutions with code."""

    STAGE: ClassVar[StageName] = "tir"

    model_name_or_path: str = "outputs/sft_cot"
    output_dir: str = "outputs/sft_tir"
    lora_r: int = 32
    lora_alpha: float = 64.0
    num_train_epochs: float = 2.0
    per_device_train_batch_size: int = 2
    gradient_accumulation_steps: int = 16
    learning_rate: float = 1e-5
    max_seq_length: int = 8192
    save_steps: int = 200
    eval_steps: int = 200
    max_code_executions: int = 5

    def _settings(self) -> Mapping[str, Any]:
        return {**super()._settings(), "max_executions": self.max_code_executions}


class SFTTIRTrainer(SFTTrainer):
    """Trains on solutions with code, which is run in the sandbox first: rows with another output are left out."""

    def __init__(self, config: SFTTIRConfig) -> None:
        """Translate `config` into a stage. Raises ConfigError for what the trainers here do not do."""
        super().__init__(config)


def extract_code_blocks(text: str) -> list[str]:
    """Return the Python programs of a solution."""
    return [block.code for block in find_code_blocks(text)]


def format_code_output(code: str, output: str) -> str:
    """Return a program and what it printed, as solutions show them."""
    return f"```python\n{code}```\n```output\n{output}\n```"
