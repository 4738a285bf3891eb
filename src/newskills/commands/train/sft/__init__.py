# SPDX-License-Identifier: Apache-2.0
"""`ns sft`: supervised fine-tuning on this machine."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from newskills.commands.command import Command
from newskills.commands.shared.training_options import TRAINING, LocalOptions, StepKeys
from newskills.pipelines.options import doc
from newskills.train.settings import Schedule


class Options(LocalOptions, frozen=True, kw_only=True):
    training_data: Annotated[str, doc("file of {input, output}, {messages} or {instruction, input, output}")]


class SftKeys(StepKeys, frozen=True, kw_only=True):
    """`++` keys of `ns sft`."""

    batch_size: Annotated[int, Meta(ge=1, description="sequences per step")] = 16
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    code_tags: Annotated[
        str | None,
        Meta(description="how code is marked in `output` texts (qwen: ```python); what it printed is not learnt"),
    ] = None
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


COMMAND = Command(
    name="sft",
    summary="Fine-tune a small model on this machine (SFT; LoRA on a CPU). A killed or stopped run resumes "
    "with the same command and reaches the same numbers. Needs newskills[train,local].",
    options=Options,
    config=SftKeys,
    run="newskills.commands.train.sft.work:run",
    aliases={"hf_model": "model"},
    examples=(
        "ns sft --model=smollm2 --training_data=train.jsonl --output_dir=training/sft ++epochs=2 ++learning_rate=1e-3",
    ),
    essentials=(*TRAINING, "++too_long", "++max_length"),
)
