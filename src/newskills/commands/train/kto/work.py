# SPDX-License-Identifier: Apache-2.0
"""What `ns kto` does: replies that are good or bad, and a run of KTO."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from newskills.commands.shared.preferences import asked_by, check_prompts, content_of, input_files
from newskills.commands.shared.training import (
    FINAL,
    TrainingRun,
    check_trainer,
    config_of,
    held_out_of,
    identity,
    keys_of,
    run_training,
    show_or_launch,
)
from newskills.commands.train.kto import KtoKeys, Options
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step
from newskills.recipes.preferences import LabelledText, label_outputs, read_labelled
from newskills.recipes.skill import Skill
from newskills.recipes.training import fitting, model_folder
from newskills.train.loops.kto import KtoConfig, LabelledReply
from newskills.train.loops.schedule import steps_of
from newskills.train.trainers import KtoTrainer, Trainer, make_trainer, unsupported

WHAT, ABLE = "KTO", "trl"


def run(parsed: Parsed[Options]) -> int:
    """Run the command and return the exit code. Raises ConfigError (options, packages), DataError (replies, overlap),
    TrainingError."""
    options = parsed.options
    keys = keys_of(KtoKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    made = make_trainer(options.backend, Path(options.model), keys.trainer)
    _able(made, options)
    files, out = input_files("kto", options), Path(options.output_dir)
    plan: list[Step] = [
        ("reads", options.model, "the model"),
        *(("reads", file, "labelled replies" if options.training_data else "graded outputs") for file in files),
        ("writes", out, f"steps of {keys.batch_size} replies: metrics.jsonl, checkpoints"),
        ("writes", out / FINAL, "the trained model"),
    ]
    if (code := show_or_launch("kto", parsed, keys, plan)) is not None:
        return code
    base = model_folder(options.model, out / "base_hf_model", say=print)
    skill, labelled = _labelled(options, keys, base, files)
    check_prompts(options, [row.prompt for row in labelled])
    replies = _fitting(labelled, skill, keys, base)
    steps = keys.steps or steps_of(keys.epochs, max(1, len(replies)), keys.batch_size)
    config = config_of(KtoConfig, keys, steps)
    content = content_of(labelled)
    settings = {**identity(keys), "steps": steps, "data": [str(file) for file in files], "replies": content}
    with held_out_of(options, keys, base) as held_out:
        return run_training(
            options,
            keys,
            TrainingRun(title="KTO", base=base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: _able(trainer, options).kto(replies, config, folder, hooks),
        )


def _labelled(
    options: Options, keys: KtoKeys, base: Path, files: Sequence[Path]
) -> tuple[Skill, list[LabelledText]]:
    if options.training_data is not None:
        return Skill(base, template=keys.chat_template_kwargs), read_labelled(files[0])
    skill = asked_by(options, keys, base, files[0])
    labelled, unscored = label_outputs(files, skill, keep_cut_off=not keys.drop_cut_off)
    good = sum(row.label for row in labelled)
    left_out = f"; replies ignored: {unscored} without a verdict" if unscored else ""
    sys.stdout.write(f"replies: {good} good, {len(labelled) - good} bad{left_out}\n")
    return skill, labelled


def _fitting(labelled: Sequence[LabelledText], skill: Skill, keys: KtoKeys, base: Path) -> list[LabelledReply]:
    """Token ids of the replies that fit into the model's context. Raises DataError."""
    limit = keys.limit(base)
    examples = [row.example(skill) for row in labelled]
    too_long = "drop" if keys.too_long == "truncate" else keys.too_long
    kept = {id(datum) for datum in fitting(examples, limit, too_long, say=print)}
    return [
        LabelledReply(reply=datum, good=row.label)
        for datum, row in zip(examples, labelled, strict=True)
        if id(datum) in kept
    ]


def _able(trainer: Trainer, options: Options) -> KtoTrainer:
    """Return the trainer. Raises ConfigError for one that lacks KTO."""
    if not isinstance(trainer, KtoTrainer):
        raise unsupported(options.backend, WHAT, ABLE)
    return trainer
