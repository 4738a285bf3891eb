# SPDX-License-Identifier: Apache-2.0
"""What `ns reward_model` does: pairs, and a run that makes a reward model."""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.commands.shared.preferences import described_pairs, input_files, pairs_identity, read_pairs
from newskills.commands.shared.training import (
    FINAL,
    TrainingRun,
    check_trainer,
    config_of,
    identity,
    keys_of,
    run_training,
    show_or_launch,
)
from newskills.commands.train.reward_model import Options, RewardModelKeys
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step
from newskills.recipes.preferences import held_out_pairs, told_accuracy
from newskills.recipes.training import model_folder
from newskills.train.loops.reward_model import HELD_OUT, RewardModelConfig
from newskills.train.loops.schedule import steps_of
from newskills.train.trainers import RewardModelTrainer, Trainer, make_trainer, unsupported

WHAT, ABLE = "reward models", "cpu or trl"


def run(parsed: Parsed[Options]) -> int:
    """Run the command and return the exit code. Raises ConfigError (options, packages), DataError (pairs),
    TrainingError."""
    options = parsed.options
    keys = keys_of(RewardModelKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    _able(make_trainer(options.backend, Path(options.model), keys.trainer), options)
    files, out = input_files("reward_model", options), Path(options.output_dir)
    plan: list[Step] = [
        ("reads", options.model, "the model"),
        *described_pairs(options, files),
        ("writes", out / HELD_OUT, "scores of held-out pairs"),
        ("writes", out / FINAL, "the reward model"),
    ]
    if (code := show_or_launch("reward_model", parsed, keys, plan)) is not None:
        return code
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
    """Return the trainer. Raises ConfigError for one that lacks training of reward models."""
    if not isinstance(trainer, RewardModelTrainer):
        raise unsupported(options.backend, WHAT, ABLE)
    return trainer
