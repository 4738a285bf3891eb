# SPDX-License-Identifier: Apache-2.0
"""`ns grpo`: reinforcement learning here or as a cluster job, rewarded by a grader."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.methods.grpo_options import GrpoKeys, GrpoOptions
from newskills.pipelines.training.methods.options import TRAINING

COMMAND = Command(
    name="grpo",
    summary="Train a small model with reinforcement learning (GRPO, LoRA on a CPU), here or as a cluster job: the "
    "grader that evaluates gives the reward. A killed or stopped run resumes with the same command and reaches "
    "the same numbers. Needs newskills[train,local].",
    options=GrpoOptions,
    config=GrpoKeys,
    run="newskills.pipelines.training.methods.grpo:run",
    result="newskills.pipelines.training.methods.grpo:train_grpo",
    prepare="newskills.pipelines.training.methods.grpo:prepare",
    aliases={"hf_model": "model"},
    examples=(
        "ns grpo --model=training/sft/final_hf_model --benchmark=sorting-lesson --output_dir=training/grpo ++steps=30",
        "ns grpo --model=smollm2 --training_data=problems.jsonl --output_dir=training/math "
        "++prompt_config=generic/math ++eval_type=math",
    ),
    essentials=(
        *TRAINING,
        "benchmark",
        "eval_data",
        "++prompt_config",
        "++eval_type",
        "++group_size",
        "++solver_config",
        "++agent",
        "++max_tokens",
        "++temperature",
        "++kl",
        "++held_out",
        "++reward.correct",
        "++reward.wrong",
    ),
)
