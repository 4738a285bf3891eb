# SPDX-License-Identifier: Apache-2.0
"""`ns improve`: rounds of training on the model's own correct replies, each kept only if it is better."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.options import ImproveOptions
from newskills.recipes.improve.records import ImproveKeys

COMMAND = Command(
    name="improve",
    summary="Improve a model in rounds, here or as a cluster job: sample replies to training problems, grade them, "
    "train on the correct ones (or by GRPO), evaluate on held-out problems, and keep the round only if a paired test "
    "shows that it is better; else go back to the last kept model and change the mixture. A killed or stopped run "
    "resumes with the same command. Needs newskills[train,local].",
    options=ImproveOptions,
    config=ImproveKeys,
    run="newskills.pipelines.training.improve:run",
    result="newskills.pipelines.training.improve:improve_model",
    prepare="newskills.pipelines.training.improve:prepare",
    aliases={"hf_model": "model"},
    examples=(
        "ns improve --model=smollm2 --benchmark=sorting-lesson --solutions=solutions.jsonl --rounds=3 "
        "--output_dir=results/improve ++learning_rate=1e-3",
        "ns improve --cluster=slurm --server_type=vllm --server_gpus=1 --backend=trl --model=/models/base "
        "--benchmark=gsm8k --output_dir=/results/improve",
    ),
    essentials=(
        "benchmark",
        "output_dir",
        "model",
        "rounds",
        "patience",
        "method",
        "config",
        "training_data",
        "solutions",
        "guard",
        "margin",
        "dry_run",
        "++problems",
        "++samples",
        "++max_tokens",
        "++held_out",
        "++alpha",
        "++epochs",
        "++learning_rate",
        "++seed",
    ),
)
