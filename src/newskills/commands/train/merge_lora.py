# SPDX-License-Identifier: Apache-2.0
"""`ns merge_lora`: an adapter multiplied into its base."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.options import MergeOptions

COMMAND = Command(
    name="merge_lora",
    summary="Merge a LoRA adapter into its base model: writes a Hugging Face folder that any server can load.",
    options=MergeOptions,
    result="newskills.pipelines.training.merge_lora:merge_adapter",
    aliases={"input_model": "base_model", "adapter_path": "adapter"},
    examples=(
        "ns merge_lora --base_model=models/base --adapter=training/sft/checkpoint-000044 --output_model=models/sft",
    ),
)
