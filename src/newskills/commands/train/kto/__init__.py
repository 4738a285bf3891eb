# SPDX-License-Identifier: Apache-2.0
"""`ns kto`: learning from replies that are good or bad, each on its own."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from newskills.commands.command import Command
from newskills.commands.shared.reply_options import ReplyKeys, ReplyOptions
from newskills.commands.shared.training_options import TRAINING
from newskills.pipelines.options import doc
from newskills.train.settings import Schedule


class Options(ReplyOptions, frozen=True, kw_only=True):
    training_data: Annotated[
        str | None, doc("JSONL file of {prompt, completion, label}: label true for a good reply")
    ] = None
    backend: Annotated[str, doc("trl: any model, GPUs or a CPU (newskills[trl]); no other trainer has KTO")] = (
        "trl"
    )


class KtoKeys(ReplyKeys, frozen=True, kw_only=True):
    """`++` keys of `ns kto`."""

    learning_rate: Annotated[float, Meta(gt=0, description="peak learning rate")] = 5e-5
    batch_size: Annotated[int, Meta(ge=2, description="replies per step")] = 16
    beta: Annotated[float, Meta(gt=0, description="beta: how much a difference from the initial model counts")] = (
        0.1
    )
    good_weight: Annotated[float, Meta(ge=0, description="weight of the loss of good replies")] = 1.0
    bad_weight: Annotated[float, Meta(ge=0, description="weight of the loss of bad replies")] = 1.0
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


COMMAND = Command(
    name="kto",
    summary="Train on replies that are good or bad, each on its own (KTO, with TRL): no two replies to one prompt are "
    "needed. Replies come from a file, or from graded outputs, where correct ones are good. A killed or stopped run "
    "resumes with the same command. Needs newskills[trl].",
    options=Options,
    config=KtoKeys,
    run="newskills.commands.train.kto.work:run",
    aliases={"hf_model": "model"},
    examples=(
        "ns kto --model=models/base --training_data=labelled.jsonl --output_dir=training/kto",
        "ns kto --model=models/base --benchmark=gsm8k "
        "--input_files 'results/eval-results/gsm8k/output-rs*.jsonl' --output_dir=training/kto",
    ),
    essentials=(*TRAINING, "input_files", "benchmark", "++beta", "++good_weight", "++bad_weight", "++too_long"),
)
