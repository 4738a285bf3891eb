# SPDX-License-Identifier: Apache-2.0
"""`ns sft`: supervised fine-tuning here or as a cluster job."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.methods.method_options import SftKeys, SftOptions
from newskills.pipelines.training.methods.options import TRAINING

COMMAND = Command(
    name="sft",
    summary="Fine-tune a small model (SFT; LoRA on a CPU), here or as a cluster job. A killed or stopped run "
    "resumes with the same command and reaches the same numbers. Needs newskills[train,local].",
    options=SftOptions,
    config=SftKeys,
    run="newskills.pipelines.training.methods.sft:run",
    result="newskills.pipelines.training.methods.sft:train_sft",
    prepare="newskills.pipelines.training.methods.sft:prepare",
    aliases={"hf_model": "model"},
    examples=(
        "ns sft --model=smollm2 --training_data=train.jsonl --output_dir=training/sft ++epochs=2 ++learning_rate=1e-3",
        "ns sft --cluster=slurm --num_gpus=8 --dependent_jobs=3 --backend=trl --model=/models/base "
        "--training_data=/data/train.jsonl --output_dir=/results/sft",
    ),
    essentials=(*TRAINING, "++too_long", "++max_length"),
)
