# SPDX-License-Identifier: Apache-2.0
"""`ns dpo`: learning from preferences on this machine."""

from __future__ import annotations

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
    held_out_of,
    identity,
    keys_of,
    run_training,
)
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.recipes.training import model_folder
from newskills.train.loops.dpo import DpoConfig
from newskills.train.loops.schedule import Schedule, steps_of


class Options(PairOptions, frozen=True, kw_only=True):
    pass


class DpoKeys(PairKeys, frozen=True, kw_only=True):
    """`++` keys of `ns dpo`."""

    learning_rate: Annotated[float, Meta(gt=0, description="peak learning rate")] = 5e-5
    batch_size: Annotated[int, Meta(ge=1, description="pairs per step")] = 8
    beta: Annotated[float, Meta(gt=0, description="beta: how much a difference from the initial model counts")] = (
        0.1
    )
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


def run(parsed: Parsed[Options]) -> int:
    """Returns the exit code. Raises ConfigError (options, packages), DataError (pairs, overlap), TrainingError."""
    options = parsed.options
    keys = keys_of(DpoKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    files, out = input_files("dpo", options), Path(options.output_dir)
    if options.dry_run:
        show_dry_run(
            [
                ("reads", options.model, "the model"),
                *described_pairs(options, files),
                ("writes", out, f"steps of {keys.batch_size} pairs: metrics.jsonl, checkpoints"),
                ("writes", out / FINAL, "the trained model"),
            ]
        )
        return 0
    require_train("torch", "safetensors", "tokenizers")
    base = model_folder(options.model, out / "base_hf_model", say=print)
    preferences, pairs = read_pairs(options, keys, base, files)
    steps = keys.steps or steps_of(keys.epochs, len(pairs), keys.batch_size)
    config = config_of(DpoConfig, keys, steps)
    settings = {**identity(keys), "steps": steps, **pairs_identity(files, preferences)}
    with held_out_of(options, keys, base) as held_out:
        return run_training(
            options,
            keys,
            TrainingRun(title="DPO", base=base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: trainer.dpo(pairs, config, folder, hooks),
        )


COMMAND = Command(
    name="dpo",
    summary="Train a small model on preferred and rejected replies on this machine (DPO; LoRA on a CPU). Pairs come "
    "from a file, or from graded outputs: correct replies beside wrong ones to the same problem. A killed or stopped "
    "run resumes with the same command and reaches the same numbers. Needs newskills[train,local].",
    options=Options,
    config=DpoKeys,
    run=run,
    aliases={"hf_model": "model"},
    examples=(
        "ns dpo --model=training/sft/final_hf_model --training_data=pairs.jsonl --output_dir=training/dpo",
        "ns dpo --model=training/sft/final_hf_model --benchmark=sorting-lesson "
        "--input_files 'results/eval-results/sorting-lesson/output-rs*.jsonl' --output_dir=training/dpo",
    ),
    essentials=(*TRAINING, "input_files", "benchmark", "++beta", "++pairs_per_problem", "++too_long"),
)
