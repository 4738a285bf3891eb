# SPDX-License-Identifier: Apache-2.0
"""What `ns reward_model` trains on: pairs, of which some are only scored."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from newskills.pipelines.training.methods.method_options import RewardModelKeys, RewardModelOptions
from newskills.pipelines.training.methods.pipeline import PlannedTraining, TrainingPipeline, TrainingRequest
from newskills.pipelines.training.methods.replies import described_pairs, input_files, pairs_identity, read_pairs
from newskills.pipelines.training.methods.running import ReadyTraining, config_of
from newskills.run.training.preferences import held_out_pairs, told_accuracy
from newskills.train.loops.reward_model import HELD_OUT, PreferenceData, RewardModelConfig
from newskills.train.loops.schedule import steps_of


def plan_reward_model(request: TrainingRequest[RewardModelOptions, RewardModelKeys]) -> PlannedTraining:
    """Find the files of pairs. Raises ConfigError, DataError."""
    options, keys, out = request.options, request.keys, request.output_dir
    files = input_files("reward_model", options)

    def task(base: Path, stack: ExitStack) -> ReadyTraining:
        preferences, pairs = read_pairs(options, keys, base, files)
        training, held_out = held_out_pairs(pairs, keys.held_out, keys.seed)
        steps = keys.steps or steps_of(keys.epochs, len(training), keys.batch_size)
        return ReadyTraining(
            title="reward model",
            base=base,
            method=config_of(RewardModelConfig, keys, steps),
            data=PreferenceData(pairs=training, held_out=held_out),
            settings={"steps": steps, **pairs_identity(files, preferences)},
        )

    def end() -> None:
        if (out / HELD_OUT).is_file():
            sys.stdout.write(f"{told_accuracy(out / HELD_OUT)}\n")

    scored = ("writes", out / HELD_OUT, "scores of held-out pairs")
    return PlannedTraining(steps=[*described_pairs(options, files), scored], task=task, end=end)


PIPELINE = TrainingPipeline(
    command="reward_model",
    keys=RewardModelKeys,
    plan=plan_reward_model,
    method=lambda _: "reward_model",
    able="cpu or trl",
    writes="the reward model",
)
run, train_reward_model, prepare = PIPELINE.run, PIPELINE.result, PIPELINE.prepare
