# SPDX-License-Identifier: Apache-2.0
"""`ns reward_model`: a model that gives replies a number, from pairs of a preferred and a rejected reply."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from newskills.commands.command import Command
from newskills.commands.shared.preferences import (
    PairKeys,
    PairOptions,
    described_pairs,
    input_files,
    pairs_identity,
    read_pairs,
)
from newskills.commands.shared.training import (
    FINAL,
    TRAINING,
    TrainingRun,
    check_trainer,
    config_of,
    identity,
    keys_of,
    run_training,
)
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.recipes.preferences import held_out_pairs, told_accuracy
from newskills.recipes.training import model_folder
from newskills.train.loops.reward_model import HELD_OUT, RewardModelConfig
from newskills.train.loops.schedule import Schedule, steps_of
from newskills.train.trainers import RewardModelTrainer, Trainer, make_trainer, unsupported

WHAT, ABLE = "reward models", "cpu or trl"


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


def run(parsed: Parsed[Options]) -> int:
    """Returns the exit code. Raises ConfigError (options, packages), DataError (pairs), TrainingError."""
    options = parsed.options
    keys = keys_of(RewardModelKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    _able(make_trainer(options.backend, Path(options.model), keys.trainer), options)
    files, out = input_files("reward_model", options), Path(options.output_dir)
    if options.dry_run:
        show_dry_run(
            [
                ("reads", options.model, "the model"),
                *described_pairs(options, files),
                ("writes", out / HELD_OUT, "scores of held-out pairs"),
                ("writes", out / FINAL, "the reward model"),
            ]
        )
        return 0
    require_train("torch", "safetensors", "tokenizers")
    base = model_folder(options.model, out / "base_hf_model", say=print)
    preferences, pairs = read_pairs(options, keys, base, files)
    training, held_out = held_out_pairs(pairs, keys.held_out, keys.seed)
    steps = keys.steps or steps_of(keys.epochs, len(training), keys.batch_size)
    config = config_of(RewardModelConfig, keys, steps)
    settings = {**identity(keys), "steps": steps, **pairs_identity(files, preferences)}
    code = run_training(
        options,
        keys,
        TrainingRun(title="reward model", base=base, settings=settings),
        lambda trainer, folder, hooks: _able(trainer, options).reward_model(
            training, held_out, config, folder, hooks
        ),
    )
    if code == 0 and (out / HELD_OUT).is_file():
        sys.stdout.write(f"{told_accuracy(out / HELD_OUT)}\n")
    return code


def _able(trainer: Trainer, options: Options) -> RewardModelTrainer:
    """Raises ConfigError for a trainer that lacks it."""
    if not isinstance(trainer, RewardModelTrainer):
        raise unsupported(options.backend, WHAT, ABLE)
    return trainer


COMMAND = Command(
    name="reward_model",
    summary="Train a reward model on this machine: of two replies to one prompt, it gives the preferred one the higher "
    "number (Bradley–Terry). Pairs come from a file, or from graded outputs. The accuracy on held-out pairs is printed "
    "with its interval; ns serve_rewards --reward_model serves the model. Needs newskills[train,local].",
    options=Options,
    config=RewardModelKeys,
    run=run,
    aliases={"hf_model": "model"},
    examples=(
        "ns reward_model --model=smollm2 --training_data=pairs.jsonl --output_dir=training/rm",
        "ns reward_model --model=training/sft/final_hf_model --benchmark=sorting-lesson "
        "--input_files 'results/eval-results/sorting-lesson/output-rs*.jsonl' --output_dir=training/rm",
    ),
    essentials=(*TRAINING, "input_files", "benchmark", "++pairs_per_problem", "++held_out", "++too_long"),
)
