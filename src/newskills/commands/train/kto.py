# SPDX-License-Identifier: Apache-2.0
"""`ns kto`: learning from replies that are good or bad, each on its own."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.methods.method_options import KtoKeys, KtoOptions
from newskills.pipelines.training.methods.options import TRAINING

COMMAND = Command(
    name="kto",
    summary="Train on replies that are good or bad, each on its own (KTO): no two replies to one prompt are "
    "needed. Here or as a cluster job. Replies come from a file, or from graded outputs, where correct ones are "
    "good. A killed or stopped run resumes with the same command. Needs newskills[trl].",
    options=KtoOptions,
    config=KtoKeys,
    run="newskills.pipelines.training.methods.kto:run",
    result="newskills.pipelines.training.methods.kto:train_kto",
    prepare="newskills.pipelines.training.methods.kto:prepare",
    aliases={"hf_model": "model"},
    examples=(
        "ns kto --model=models/base --training_data=labelled.jsonl --output_dir=training/kto",
        "ns kto --model=models/base --benchmark=gsm8k "
        "--input_files 'results/eval-results/gsm8k/output-rs*.jsonl' --output_dir=training/kto",
    ),
    essentials=(*TRAINING, "input_files", "benchmark", "++beta", "++good_weight", "++bad_weight", "++too_long"),
)
