# SPDX-License-Identifier: Apache-2.0
"""What `ns dpo` trains on: pairs of a preferred and a rejected reply."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from newskills.pipelines.training.methods.held_out import held_out_of, print_remark
from newskills.pipelines.training.methods.method_options import DpoKeys, DpoOptions
from newskills.pipelines.training.methods.pipeline import PlannedTraining, TrainingPipeline, TrainingRequest
from newskills.pipelines.training.methods.replies import described_pairs, input_files, pairs_identity, read_pairs
from newskills.pipelines.training.methods.running import ReadyTraining, config_of
from newskills.run.training.preferences import displacement_warning
from newskills.train.loops.dpo import DpoConfig
from newskills.train.loops.folder import METRICS
from newskills.train.loops.schedule import steps_of


def plan_dpo(request: TrainingRequest[DpoOptions, DpoKeys]) -> PlannedTraining:
    """Find the files of pairs. Raises ConfigError, DataError."""
    options, keys, out = request.options, request.keys, request.output_dir
    files = input_files("dpo", options)

    def task(base: Path, stack: ExitStack) -> ReadyTraining:
        preferences, pairs = read_pairs(options, keys, base, files)
        steps = keys.steps or steps_of(keys.epochs, len(pairs), keys.batch_size)
        return ReadyTraining(
            title="DPO",
            base=base,
            method=config_of(DpoConfig, keys, steps),
            data=pairs,
            settings={"steps": steps, **pairs_identity(files, preferences)},
            held_out=stack.enter_context(held_out_of(options, keys, base)),
        )

    def end() -> None:
        if sentence := displacement_warning(out / METRICS):
            print_remark(sentence)

    written = f"steps of {keys.batch_size} pairs: metrics.jsonl, checkpoints"
    return PlannedTraining(steps=[*described_pairs(options, files), ("writes", out, written)], task=task, end=end)


PIPELINE = TrainingPipeline(command="dpo", keys=DpoKeys, plan=plan_dpo, method=lambda _: "dpo")
run, train_dpo, prepare = PIPELINE.run, PIPELINE.result, PIPELINE.prepare
