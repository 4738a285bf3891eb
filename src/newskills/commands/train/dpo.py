# SPDX-License-Identifier: Apache-2.0
"""`ns dpo`: learning from preferences here or as a cluster job."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.methods.method_options import DpoKeys, DpoOptions
from newskills.pipelines.training.methods.options import TRAINING

COMMAND = Command(
    name="dpo",
    summary="Train a small model on preferred and rejected replies (DPO; LoRA on a CPU), here or as a cluster "
    "job. Pairs come from a file, or from graded outputs: correct replies beside wrong ones to the same problem. "
    "A killed or stopped run resumes with the same command and reaches the same numbers. Needs "
    "newskills[train,local].",
    options=DpoOptions,
    config=DpoKeys,
    run="newskills.pipelines.training.methods.dpo:run",
    result="newskills.pipelines.training.methods.dpo:train_dpo",
    prepare="newskills.pipelines.training.methods.dpo:prepare",
    aliases={"hf_model": "model"},
    examples=(
        "ns dpo --model=training/sft/final_hf_model --training_data=pairs.jsonl --output_dir=training/dpo",
        "ns dpo --model=training/sft/final_hf_model --benchmark=sorting-lesson "
        "--input_files 'results/eval-results/sorting-lesson/output-rs*.jsonl' --output_dir=training/dpo",
    ),
    essentials=(
        *(*TRAINING, "input_files", "benchmark"),
        *("++beta", "++sft_weight", "++pairs_per_problem", "++too_long"),
    ),
)
