# SPDX-License-Identifier: Apache-2.0
"""What `ns dpo` does: pairs, and a run of direct preference optimisation."""

from __future__ import annotations

from pathlib import Path

from newskills.commands.shared.preferences import described_pairs, input_files, pairs_identity, read_pairs
from newskills.commands.shared.training import (
    FINAL,
    TrainingRun,
    check_trainer,
    config_of,
    held_out_of,
    identity,
    keys_of,
    remark,
    run_training,
    show_or_launch,
)
from newskills.commands.train.dpo import DpoKeys, Options
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step
from newskills.recipes.preferences import displacement
from newskills.recipes.training import model_folder
from newskills.train.loops.dpo import DpoConfig
from newskills.train.loops.folder import METRICS
from newskills.train.loops.schedule import steps_of


def run(parsed: Parsed[Options]) -> int:
    """Run the command and return the exit code. Raises ConfigError (options, packages), DataError (pairs, overlap),
    TrainingError."""
    options = parsed.options
    keys = keys_of(DpoKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    files, out = input_files("dpo", options), Path(options.output_dir)
    plan: list[Step] = [
        ("reads", options.model, "the model"),
        *described_pairs(options, files),
        ("writes", out, f"steps of {keys.batch_size} pairs: metrics.jsonl, checkpoints"),
        ("writes", out / FINAL, "the trained model"),
    ]
    if (code := show_or_launch("dpo", parsed, keys, plan)) is not None:
        return code
    base = model_folder(options.model, out / "base_hf_model", say=print)
    preferences, pairs = read_pairs(options, keys, base, files)
    steps = keys.steps or steps_of(keys.epochs, len(pairs), keys.batch_size)
    config = config_of(DpoConfig, keys, steps)
    settings = {**identity(keys), "steps": steps, **pairs_identity(files, preferences)}
    with held_out_of(options, keys, base) as held_out:
        code = run_training(
            options,
            keys,
            TrainingRun(title="DPO", base=base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: trainer.dpo(pairs, config, folder, hooks),
        )
    if code == 0 and (sentence := displacement(out / METRICS)):
        remark(sentence)
    return code
