# SPDX-License-Identifier: Apache-2.0
"""`ns verl ppo`: reinforcement learning with verl on a cluster."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.foreign.options import PpoVerlOptions

COMMAND = Command(
    name="ppo_verl",
    summary="Train a model with reinforcement learning (PPO, GRPO, …) in verl on a cluster. Rows of "
    "{problem, expected_answer} are converted to verl's format and rewarded by the math grader of "
    "evaluations. ++key=value sets verl's own keys.",
    options=PpoVerlOptions,
    run="newskills.pipelines.training.foreign.verl:run",
    prepare="newskills.pipelines.training.foreign.verl:prepare",
    result="newskills.pipelines.training.foreign.verl:train_with_verl",
    any_keys=True,
    aliases={"hf_model": "model", "training_data": "prompt_data", "validation_data": "eval_data"},
    examples=(
        "ns verl ppo --cluster=slurm --expname=my-ppo --hf_model=/models/sft --prompt_data=/data/train.jsonl "
        "--output_dir=/results/my-ppo --num_nodes=2 --num_gpus=8 ++algorithm.adv_estimator=grpo "
        "++actor_rollout_ref.rollout.n=8",
    ),
)
