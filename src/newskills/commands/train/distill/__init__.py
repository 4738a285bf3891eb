# SPDX-License-Identifier: Apache-2.0
"""`ns distill`: a student learns from a teacher, by its log-probabilities or by its answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from newskills.commands.command import Command
from newskills.commands.shared.training_options import TRAINING, LocalOptions, PromptKeys
from newskills.pipelines.options import doc
from newskills.train.settings import Schedule


class Options(LocalOptions, frozen=True, kw_only=True):
    teacher: Annotated[
        str, doc("Hugging Face folder, .gguf file or smollm2; with --teacher_address, the model's name there")
    ]
    teacher_address: Annotated[
        str | None, doc("address of a server that has the teacher, such as http://gpu:8000/v1")
    ] = None
    teacher_type: Annotated[str, doc("kind of that server: vllm, sglang, openai, …")] = "vllm"
    by: Annotated[
        Literal["logprobs", "texts"],
        doc(
            "logprobs: the student samples, the teacher scores its tokens (on-policy); texts: the teacher answers, "
            "correct answers are trained on (SFT)"
        ),
    ] = "logprobs"
    benchmark: Annotated[str | None, doc("benchmark whose problems are asked: its prompt, grader and split")] = (
        None
    )
    split: Annotated[str, doc("split of the benchmark")] = "train"
    training_data: Annotated[
        str | None, doc("JSONL file of problems instead of the benchmark's, with the fields that the prompt needs")
    ] = None


class DistillKeys(PromptKeys, frozen=True, kw_only=True):
    """`++` keys of `ns distill`."""

    batch_size: Annotated[int, Meta(ge=1, description="prompts per step (by=texts: sequences)")] = 8
    samples: Annotated[int, Meta(ge=1, description="samples per prompt (by=texts: the teacher's answers)")] = 4
    max_tokens: Annotated[int, Meta(ge=1, description="longest sample in tokens")] = 256
    temperature: Annotated[float, Meta(ge=0, description="temperature of the teacher's answers (by=texts)")] = 0.7
    per_problem: Annotated[int, Meta(ge=1, description="most correct answers of one problem (by=texts)")] = 2
    eval_type: Annotated[str | None, Meta(description="another grader than the benchmark's (by=texts)")] = None
    eval_config: Annotated[dict[str, Any], Meta(description="settings of the grader (by=texts)")] = msgspec.field(
        default_factory=dict
    )
    max_retries: Annotated[int, Meta(ge=0, description="retries of a request to the teacher")] = 3
    api_key_env_var: Annotated[
        str | None, Meta(description="environment variable with the key of the teacher's server")
    ] = None
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


COMMAND = Command(
    name="distill",
    summary="Train a small model (the student) on a larger one (the teacher) on this machine. On-policy: the student "
    "samples, and the teacher's log-probabilities of its tokens say what to change (reverse KL divergence per token). "
    "By texts: the teacher answers, and its correct answers are trained on. A killed or stopped run resumes with the "
    "same command. Needs newskills[train,local].",
    options=Options,
    config=DistillKeys,
    run="newskills.commands.train.distill.work:run",
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
