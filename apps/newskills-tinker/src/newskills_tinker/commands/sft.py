# SPDX-License-Identifier: Apache-2.0
"""`ns tinker sft`: supervised fine-tuning at a Tinker service."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills_tinker.commands.options import TinkerOptions
from newskills_tinker.recipes.settings import TinkerSftConfig

COMMAND = Command(
    name="tinker_sft",
    summary="Fine-tune a model at a Tinker service (TINKER_BASE_URL, TINKER_API_KEY) on solutions: chains of "
    "thought, with or without code. Options are key=value. A killed run resumes with the same "
    "command. Needs newskills[tinker].",
    options=TinkerOptions,
    config=TinkerSftConfig,
    run="newskills_tinker.running.trainings:run_sft",
    result="newskills_tinker.running.trainings:train_sft",
    examples=(
        "ns tinker sft model_name=Qwen/Qwen3-8B log_dir=outputs/cot",
        "ns tinker sft model_name=models/tiny log_dir=sft kind=tir dataset_name=pairs.jsonl batch_size=4",
    ),
)
