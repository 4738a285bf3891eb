# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_rl grpo`: reinforcement learning with NVIDIA's NeMo-RL on a cluster."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.foreign.options import GrpoNemoRlOptions

COMMAND = Command(
    name="grpo_nemo_rl",
    summary="Train a model with reinforcement learning (GRPO) in NVIDIA's NeMo-RL on a cluster. Rows of "
    "{problem, expected_answer} are rewarded by the math grader of evaluations; rows of NeMo Gym by "
    "the environments of their YAML. ++key=value sets NeMo-RL's own keys.",
    options=GrpoNemoRlOptions,
    run="newskills.pipelines.training.foreign.nemo_rl:run",
    prepare="newskills.pipelines.training.foreign.nemo_rl:prepare",
    result="newskills.pipelines.training.foreign.nemo_rl:train_with_nemo_rl",
    any_keys=True,
    aliases={"hf_model": "model"},
    examples=(
        "ns nemo_rl grpo --cluster=slurm --expname=my-grpo --hf_model=/models/sft --training_data=/data/train.jsonl "
        "--validation_data=/data/test.jsonl --output_dir=/results/my-grpo --num_gpus=8",
        "ns nemo_rl grpo --cluster=slurm --hf_model=/models/sft --training_data=/data/gym.jsonl "
        "--output_dir=/results/gym --num_nodes=2 --server_model=/models/judge --server_type=vllm --server_gpus=8 "
        "--n_servers=2",
    ),
)
