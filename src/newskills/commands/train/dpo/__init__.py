# SPDX-License-Identifier: Apache-2.0
"""`ns dpo`: learning from preferences on this machine."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from newskills.commands.command import Command
from newskills.commands.shared.reply_options import PairKeys, PairOptions
from newskills.commands.shared.training_options import TRAINING
from newskills.train.settings import Schedule


class Options(PairOptions, frozen=True, kw_only=True):
    pass


class DpoKeys(PairKeys, frozen=True, kw_only=True):
    """`++` keys of `ns dpo`."""

    learning_rate: Annotated[float, Meta(gt=0, description="peak learning rate")] = 5e-5
    batch_size: Annotated[int, Meta(ge=1, description="pairs per step")] = 8
    beta: Annotated[float, Meta(gt=0, description="beta: how much a difference from the initial model counts")] = (
        0.1
    )
    sft_weight: Annotated[
        float, Meta(ge=0, description="weight of the SFT loss on the chosen replies beside the DPO loss; 0 = none")
    ] = 1.0
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


COMMAND = Command(
    name="dpo",
    summary="Train a small model on preferred and rejected replies on this machine (DPO; LoRA on a CPU). Pairs come "
    "from a file, or from graded outputs: correct replies beside wrong ones to the same problem. A killed or stopped "
    "run resumes with the same command and reaches the same numbers. Needs newskills[train,local].",
    options=Options,
    config=DpoKeys,
    run="newskills.commands.train.dpo.work:run",
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
