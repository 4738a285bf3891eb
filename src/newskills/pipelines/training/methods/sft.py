# SPDX-License-Identifier: Apache-2.0
"""What `ns sft` trains on: examples from the rows of a file."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from newskills.base.store import read_rows
from newskills.pipelines.training.methods.held_out import held_out_of, measured_by, print_remark, remark_prompts
from newskills.pipelines.training.methods.method_options import SftKeys, SftOptions
from newskills.pipelines.training.methods.pipeline import PlannedTraining, TrainingPipeline, TrainingRequest
from newskills.pipelines.training.methods.running import BASE, ReadyTraining, config_of
from newskills.prompts.code_tags import CodeTags, code_tags
from newskills.run.training.examples import check_rows, examples_of, fit_to_length, tokenizer_folder
from newskills.run.training.leakage import check_overlap, texts_of
from newskills.run.training.shown_rows import ROWS_SHOWN, example_rows, show_examples
from newskills.run.training.skill import Skill
from newskills.train.loops.schedule import steps_of
from newskills.train.loops.sft import SftConfig


def plan_sft(request: TrainingRequest[SftOptions, SftKeys]) -> PlannedTraining:
    """Read and check the rows. Raises DataError (rows, overlap), UnknownNameError."""
    options, keys, data = request.options, request.keys, Path(request.options.training_data)
    rows = list(read_rows(data))
    read = check_rows(rows, data)
    check_overlap(
        lambda: (text for row in (*rows, *read) for text in texts_of(row)),
        measured_by(options),
        allowed=options.allow_overlap,
        say=print_remark,
    )
    steps = keys.steps or steps_of(keys.epochs, len(rows), keys.batch_size)

    def tags() -> CodeTags | None:
        if keys.code_tags is None:
            return None
        return code_tags(keys.code_tags)

    def task(base: Path, stack: ExitStack) -> ReadyTraining:
        skill = Skill(base, template=keys.chat_template_kwargs)
        examples = examples_of(rows, skill, data, tags(), add_end=keys.add_end_token, say=print_remark)
        examples = fit_to_length(examples, keys.limit(base), keys.too_long, say=print)
        held_out = stack.enter_context(held_out_of(options, keys, base))
        decode = skill.tokenizer.decode
        remark_prompts(options, examples, held_out, decode)
        return ReadyTraining(
            title="SFT",
            base=base,
            method=config_of(SftConfig, keys, steps),
            data=examples,
            settings={"steps": steps, "data": str(data)},
            held_out=held_out,
            first_rows=example_rows(examples, decode),
        )

    def show() -> None:
        with tokenizer_folder(options.model, request.output_dir / BASE) as folder:
            if folder is None:
                sys.stdout.write(
                    f"The rows are shown where the tokenizer of {options.model} is on this machine.\n"
                )
                return
            skill = Skill(folder, template=keys.chat_template_kwargs)
            examples = examples_of(
                rows[:ROWS_SHOWN], skill, data, tags(), add_end=keys.add_end_token, say=print_remark
            )
            show_examples(examples, len(rows), skill.tokenizer.decode)

    written = f"{steps} steps of {keys.batch_size}: metrics.jsonl, checkpoints"
    return PlannedTraining(
        steps=[("reads", data, f"{len(rows)} rows"), ("writes", request.output_dir, written)],
        task=task,
        shown=show,
    )


PIPELINE = TrainingPipeline(command="sft", keys=SftKeys, plan=plan_sft, method=lambda _: "sft")
run, train_sft, prepare = PIPELINE.run, PIPELINE.result, PIPELINE.prepare
