# SPDX-License-Identifier: Apache-2.0
"""`ns reward_model`: a model that gives replies a number, from pairs of a preferred and a rejected reply."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.methods.method_options import RewardModelKeys, RewardModelOptions
from newskills.pipelines.training.methods.options import TRAINING

COMMAND = Command(
    name="reward_model",
    summary="Train a reward model, here or as a cluster job: of two replies to one prompt, it gives the preferred "
    "one the higher score (Bradley–Terry). Pairs come from a file, or from graded outputs. The accuracy on "
    "held-out pairs is printed with its interval; ns serve_rewards --reward_model serves the model. Needs "
    "newskills[train,local].",
    options=RewardModelOptions,
    config=RewardModelKeys,
    run="newskills.pipelines.training.methods.reward_model:run",
    result="newskills.pipelines.training.methods.reward_model:train_reward_model",
    prepare="newskills.pipelines.training.methods.reward_model:prepare",
    aliases={"hf_model": "model"},
    examples=(
        "ns reward_model --model=smollm2 --training_data=pairs.jsonl --output_dir=training/rm",
        "ns reward_model --model=training/sft/final_hf_model --benchmark=sorting-lesson "
        "--input_files 'results/eval-results/sorting-lesson/output-rs*.jsonl' --output_dir=training/rm",
    ),
    essentials=(*TRAINING, "input_files", "benchmark", "++pairs_per_problem", "++held_out", "++too_long"),
)
