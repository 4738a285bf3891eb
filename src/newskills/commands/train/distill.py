# SPDX-License-Identifier: Apache-2.0
"""`ns distill`: a student learns from a teacher, by its log-probabilities or by its answers."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.methods.method_options import DistillKeys, DistillOptions
from newskills.pipelines.training.methods.options import TRAINING

COMMAND = Command(
    name="distill",
    summary="Train a small model (the student) on a larger one (the teacher), here or as a cluster job. "
    "On-policy: the student samples, and the teacher's log-probabilities of its tokens say what to change "
    "(reverse KL divergence per token). By texts: the teacher answers, and its correct answers are trained on. A "
    "killed or stopped run resumes with the same command. Needs newskills[train,local].",
    options=DistillOptions,
    config=DistillKeys,
    run="newskills.pipelines.training.methods.distill:run",
    result="newskills.pipelines.training.methods.distill:distill_model",
    prepare="newskills.pipelines.training.methods.distill:prepare",
    aliases={"hf_model": "model"},
    examples=(
        "ns distill --model=smollm2 --teacher=training/sft/final_hf_model --benchmark=sorting-lesson "
        "--output_dir=training/distilled ++steps=40 ++max_tokens=32",
        "ns distill --model=models/student --teacher=Qwen/Qwen3-32B --teacher_address=http://gpu:8000/v1 "
        "--benchmark=gsm8k --output_dir=training/distilled",
        "ns distill --by=texts --model=smollm2 --teacher=big-model --teacher_address=http://gpu:8000/v1 "
        "--benchmark=gsm8k --output_dir=training/taught",
    ),
    essentials=(
        *TRAINING,
        "teacher",
        "teacher_address",
        "by",
        "benchmark",
        "++samples",
        "++max_tokens",
        "++temperature",
        "++per_problem",
    ),
)
