# SPDX-License-Identifier: Apache-2.0
"""What `ns kto` trains on: replies that are good or bad, each on its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from newskills.pipelines.training.methods.held_out import held_out_of
from newskills.pipelines.training.methods.method_options import KtoKeys, KtoOptions
from newskills.pipelines.training.methods.pipeline import PlannedTraining, TrainingPipeline, TrainingRequest
from newskills.pipelines.training.methods.replies import asked_by, check_prompts, content_of, input_files
from newskills.pipelines.training.methods.running import ReadyTraining, config_of
from newskills.run.training.examples import fit_to_length
from newskills.run.training.preferences import LabelledText, label_outputs, read_labelled
from newskills.run.training.skill import Skill
from newskills.train.loops.kto import KtoConfig, LabelledReply
from newskills.train.loops.schedule import steps_of


def plan_kto(request: TrainingRequest[KtoOptions, KtoKeys]) -> PlannedTraining:
    """Find the files of replies. Raises ConfigError, DataError."""
    options, keys, out = request.options, request.keys, request.output_dir
    files = input_files("kto", options)

    def task(base: Path, stack: ExitStack) -> ReadyTraining:
        skill, labelled = _labelled_replies(options, keys, base, files)
        check_prompts(options, [row.prompt for row in labelled])
        replies = _fitting_replies(labelled, skill, keys, base)
        steps = keys.steps or steps_of(keys.epochs, max(1, len(replies)), keys.batch_size)
        named = {"steps": steps, "data": [str(file) for file in files], "replies": content_of(labelled)}
        return ReadyTraining(
            title="KTO",
            base=base,
            method=config_of(KtoConfig, keys, steps),
            data=replies,
            settings=named,
            held_out=stack.enter_context(held_out_of(options, keys, base)),
        )

    what = "labelled replies" if options.training_data else "graded outputs"
    written = f"steps of {keys.batch_size} replies: metrics.jsonl, checkpoints"
    return PlannedTraining(steps=[*(("reads", file, what) for file in files), ("writes", out, written)], task=task)


def _labelled_replies(
    options: KtoOptions, keys: KtoKeys, base: Path, files: Sequence[Path]
) -> tuple[Skill, list[LabelledText]]:
    if options.training_data is not None:
        return Skill(base, template=keys.chat_template_kwargs), read_labelled(files[0])
    skill = asked_by(options, keys, base, files[0])
    labelled, unscored = label_outputs(files, skill, keep_cut_off=not keys.drop_cut_off)
    good = sum(row.label for row in labelled)
    summary = f"replies: {good} good, {len(labelled) - good} bad"
    if unscored:
        summary += f"; replies ignored: {unscored} without a verdict"
    sys.stdout.write(f"{summary}\n")
    return skill, labelled


def _fitting_replies(
    labelled: Sequence[LabelledText], skill: Skill, keys: KtoKeys, base: Path
) -> list[LabelledReply]:
    """Return the replies that fit into the model's context, as token ids. Raises DataError."""
    limit = keys.limit(base)
    examples = [row.example(skill) for row in labelled]
    too_long = "drop" if keys.too_long == "truncate" else keys.too_long
    kept = {id(datum) for datum in fit_to_length(examples, limit, too_long, say=print)}
    return [
        LabelledReply(reply=datum, good=row.label)
        for datum, row in zip(examples, labelled, strict=True)
        if id(datum) in kept
    ]


PIPELINE = TrainingPipeline(command="kto", keys=KtoKeys, plan=plan_kto, method=lambda _: "kto")
run, train_kto, prepare = PIPELINE.run, PIPELINE.result, PIPELINE.prepare
