# SPDX-License-Identifier: Apache-2.0
"""`ns reward_model`: a model that gives replies a number, from pairs of a preferred and a rejected reply."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from newskills.commands.command import Command
from newskills.commands.shared.reply_options import PairKeys, PairOptions
from newskills.commands.shared.training_options import TRAINING
from newskills.train.settings import Schedule


class Options(PairOptions, frozen=True, kw_only=True):
    pass


class RewardModelKeys(PairKeys, frozen=True, kw_only=True):
    """`++` keys of `ns reward_model`."""

    learning_rate: Annotated[float, Meta(gt=0, description="peak learning rate")] = 1e-4
    batch_size: Annotated[int, Meta(ge=1, description="pairs per step")] = 8
    held_out: Annotated[
        float, Meta(ge=0, lt=1, description="share of the problems whose pairs are held out for evaluation")
    ] = 0.2
    eval_every: Annotated[int, Meta(ge=1, description="steps between evaluations on the held-out pairs")] = 20
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


COMMAND = Command(
    name="reward_model",
    summary="Train a reward model on this machine: of two replies to one prompt, it gives the preferred one the higher "
    "score (Bradley–Terry). Pairs come from a file, or from graded outputs. The accuracy on held-out pairs is "
    "printed "
    "with its interval; ns serve_rewards --reward_model serves the model. Needs newskills[train,local].",
    options=Options,
    config=RewardModelKeys,
    run="newskills.commands.train.reward_model.work:run",
    aliases={"hf_model": "model"},
    examples=(
        "ns reward_model --model=smollm2 --training_data=pairs.jsonl --output_dir=training/rm",
        "ns reward_model --model=training/sft/final_hf_model --benchmark=sorting-lesson "
        "--input_files 'results/eval-results/sorting-lesson/output-rs*.jsonl' --output_dir=training/rm",
    ),
    essentials=(*TRAINING, "input_files", "benchmark", "++pairs_per_problem", "++held_out", "++too_long"),
)
