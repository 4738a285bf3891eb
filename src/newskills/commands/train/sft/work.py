# SPDX-License-Identifier: Apache-2.0
"""What `ns sft` does: examples from rows, and a run of supervised fine-tuning."""

from __future__ import annotations

from pathlib import Path

from newskills.base.store import read_rows
from newskills.commands.shared.training import (
    FINAL,
    TrainingRun,
    check_trainer,
    config_of,
    held_out_of,
    identity,
    keys_of,
    measured_by,
    remark,
    run_training,
    show_or_launch,
)
from newskills.commands.train.sft import Options, SftKeys
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step
from newskills.prompts.code_tags import code_tags
from newskills.recipes.leakage import check_overlap, texts_of
from newskills.recipes.skill import Skill
from newskills.recipes.training import check_rows, examples_of, fitting, model_folder
from newskills.train.loops.schedule import steps_of
from newskills.train.loops.sft import SftConfig


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    keys = keys_of(SftKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    out, data = Path(options.output_dir), Path(options.training_data)
    rows = list(read_rows(data))
    check_rows(rows, data)
    check_overlap(
        lambda: (text for row in rows for text in texts_of(row)),
        measured_by(options),
        allowed=options.allow_overlap,
        say=remark,
    )
    steps = keys.steps or steps_of(keys.epochs, len(rows), keys.batch_size)
    plan: list[Step] = [
        ("reads", options.model, "the model"),
        ("reads", data, f"{len(rows)} rows"),
        ("writes", out, f"{steps} steps of {keys.batch_size}: metrics.jsonl, checkpoints"),
        ("writes", out / FINAL, "the trained model"),
    ]
    if (code := show_or_launch("sft", parsed, keys, plan)) is not None:
        return code
    base = model_folder(options.model, out / "base_hf_model", say=print)
    tags = code_tags(keys.code_tags) if keys.code_tags is not None else None
    skill = Skill(base, template=keys.chat_template_kwargs)
    examples = examples_of(rows, skill, data, tags, say=remark)
    examples = fitting(examples, keys.limit(base), keys.too_long, say=print)
    config = config_of(SftConfig, keys, steps)
    settings = {**identity(keys), "steps": steps, "data": str(data)}
    with held_out_of(options, keys, base) as held_out:
        return run_training(
            options,
            keys,
            TrainingRun(title="SFT", base=base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: trainer.sft(examples, config, folder, hooks),
        )
