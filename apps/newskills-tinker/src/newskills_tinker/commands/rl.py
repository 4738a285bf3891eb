# SPDX-License-Identifier: Apache-2.0
"""`ns tinker rl`: reinforcement learning of mathematics at a Tinker service."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills_tinker.commands.options import TinkerOptions
from newskills_tinker.recipes.settings import TinkerRlConfig

COMMAND = Command(
    name="tinker_rl",
    summary="Train a model with reinforcement learning at a Tinker service (TINKER_BASE_URL, "
    "TINKER_API_KEY), with rewards from the math grader. Options are key=value. A killed run resumes "
    "with the same command. Needs newskills[tinker].",
    options=TinkerOptions,
    config=TinkerRlConfig,
    run="newskills_tinker.running.trainings:run_rl",
    result="newskills_tinker.running.trainings:train_rl",
    examples=(
        "ns tinker rl model_name=Qwen/Qwen3-8B log_dir=outputs/rl",
        "ns tinker rl model_name=models/tiny log_dir=rl dataset_name=problems.jsonl batch_size=8 group_size=8 "
        "max_tokens=64 verbose=true",
    ),
)
