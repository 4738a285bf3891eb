# SPDX-License-Identifier: Apache-2.0
"""What `ns distill` does: a teacher that scores samples or writes answers, and a run that learns from them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.commands.shared.training import (
    FINAL,
    STOPPED,
    TrainingRun,
    check_trainer,
    config_of,
    held_out_of,
    identity,
    keys_of,
    measured_by,
    remark,
    run_training,
    split_questions,
)
from newskills.commands.train.distill import DistillKeys, Options
from newskills.config.command_line import Parsed
from newskills.models.config import ServerConfig
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.recipes.distillation import TeacherAnswers, TeacherSource, teacher_of, write_answers, write_examples
from newskills.recipes.leakage import check_overlap, texts_of
from newskills.recipes.skill import Skill
from newskills.recipes.training import examples_of, fitting, fitting_problems, model_folder
from newskills.run.rewarding.questions import asking_of
from newskills.train.loops.distill import Distillation, DistillConfig
from newskills.train.loops.schedule import steps_of
from newskills.train.loops.sft import SftConfig
from newskills.train.loops.stopping import StoppedError
from newskills.train.trainers import DistillingTrainer, Trainer, make_trainer, unsupported

ANSWERS, EXAMPLES = "teacher", "train.jsonl"
"""Where the teacher's graded answers are, and the examples that were made of them, below the output folder."""


ABLE = "cpu or tinker, or --by=texts"


def run(parsed: Parsed[Options]) -> int:
    """Run the command and return the exit code. Raises ConfigError (keys, packages), DataError (rows, tokenizers,
    overlap), ModelError (the teacher), TrainingError."""
    options = parsed.options
    keys = keys_of(DistillKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    if options.by == "logprobs":
        made = make_trainer(options.backend, Path(options.model), keys.trainer)
        _able(made, options)
    benchmark, data = _problems(options, keys)
    rows = list(read_rows(data))
    if not rows:
        raise DataError(f"{data} has no problems to train on.")
    if options.by == "texts" and (missing := sum("id" not in row for row in rows)):
        raise DataError(
            f"{missing} of {len(rows)} problems in {data} have no `id`, by which --by=texts finds their answers.",
            hint="Add an `id` of its own to each.",
        )
    asking = asking_of(benchmark, data, options.model, [keys.prompt_layer()])
    asking.check_one_reply(options.benchmark or str(data))
    check_overlap(
        lambda: (text for row in rows for text in texts_of(row)),
        {**split_questions(options.benchmark, options.data_dir), **measured_by(options)},
        allowed=options.allow_overlap,
        say=remark,
    )
    out = Path(options.output_dir)
    if options.dry_run:
        show_dry_run(
            [
                ("reads", options.model, "the student"),
                ("asks" if options.teacher_address else "reads", options.teacher, "the teacher"),
                ("reads", data, f"{len(rows)} problems"),
                *([("writes", out / EXAMPLES, "correct answers")] if options.by == "texts" else []),
                ("writes", out / FINAL, "the trained model"),
            ]
        )
        return 0
    require_train("torch", "safetensors", "tokenizers")
    base = model_folder(options.model, out / "base_hf_model", say=print)
    skill = Skill(base, asking_of(benchmark, data, str(base), [keys.prompt_layer()]))
    by = _by_texts if options.by == "texts" else _by_logprobs
    return by(options, keys, _Student(base=base, skill=skill, benchmark=benchmark, data=data))


class _Student(msgspec.Struct, frozen=True, kw_only=True):
    """Who learns what: the model folder, how it is asked, the benchmark and the file of its problems."""

    base: Path
    skill: Skill
    benchmark: Benchmark
    data: Path

    def settings(self, options: Options, keys: DistillKeys, steps: int) -> dict[str, Any]:
        """Return the settings that name the run."""
        names = ("teacher", "teacher_address", "by")
        return {
            **identity(keys),
            **{name: getattr(options, name) for name in names},
            "steps": steps,
            "data": str(self.data),
        }


def _by_logprobs(options: Options, keys: DistillKeys, student: _Student) -> int:
    rows = read_rows(student.data)
    problems = fitting_problems(
        [student.skill.problem(row) for row in rows],
        keys.limit(student.base),
        keys.max_tokens,
        keys.too_long,
        say=print,
    )
    steps = keys.steps or steps_of(keys.epochs, max(1, len(problems)), keys.batch_size)
    config = config_of(DistillConfig, keys, steps)
    settings = student.settings(options, keys, steps)
    with (
        held_out_of(options, keys, student.base) as held_out,
        teacher_of(_source(options, keys), student.base, keys.trainer, print) as teacher,
    ):
        task = Distillation(problems=problems, teacher=teacher, stops=student.skill.stops)
        return run_training(
            options,
            keys,
            TrainingRun(title="distillation", base=student.base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: _able(trainer, options).distill(task, config, folder, hooks),
        )


def _by_texts(options: Options, keys: DistillKeys, student: _Student) -> int:
    out = Path(options.output_dir)
    how = TeacherAnswers(
        samples=keys.samples,
        temperature=keys.temperature,
        max_tokens=keys.max_tokens,
        prompt=dict(keys.prompt_layer().values),
    )
    try:
        files = write_answers(_source(options, keys), student.benchmark, student.data, how, out / ANSWERS, print)
    except StoppedError as stopped:
        sys.stdout.write(f"{stopped}\n")
        return STOPPED
    count = write_examples(files, student.data, student.skill, keys.per_problem, out / EXAMPLES)
    sys.stdout.write(f"{out / EXAMPLES}: {count}\n")
    examples = fitting(
        examples_of(list(read_rows(out / EXAMPLES)), student.skill, out / EXAMPLES),
        keys.limit(student.base),
        keys.too_long,
        say=print,
    )
    steps = keys.steps or steps_of(keys.epochs, max(1, len(examples)), keys.batch_size)
    config = config_of(SftConfig, keys, steps)
    settings = student.settings(options, keys, steps)
    with held_out_of(options, keys, student.base) as held_out:
        return run_training(
            options,
            keys,
            TrainingRun(title="distillation", base=student.base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: trainer.sft(examples, config, folder, hooks),
        )


def _source(options: Options, keys: DistillKeys) -> TeacherSource:
    server = None
    if options.teacher_address is not None:
        server = ServerConfig(
            server_type=options.teacher_type,
            model=options.teacher,
            base_url=options.teacher_address,
            max_retries=keys.max_retries,
            api_key_env_var=keys.api_key_env_var,
        )
    return TeacherSource(model=options.teacher, made=Path(options.output_dir) / "teacher_hf_model", server=server)


def _problems(options: Options, keys: DistillKeys) -> tuple[Benchmark, Path]:
    """Prompt and grader, and the file of problems. Raises ConfigError, UnknownNameError, DataError."""
    if options.benchmark is None and options.training_data is None:
        raise ConfigError("Which problems? Give --benchmark, or --training_data with ++prompt_config.")
    if options.benchmark is not None:
        benchmark = get_benchmark(options.benchmark)
    else:
        benchmark = Benchmark(name="problems", category="reasoning", title="problems of the user's own")
    if keys.eval_type is not None or keys.eval_config:
        kept = benchmark.grader_config if keys.eval_type is None else {}
        grader, settings = keys.eval_type or benchmark.grader, {**kept, **keys.eval_config}
        benchmark = msgspec.structs.replace(benchmark, grader=grader, grader_config=settings)
    if options.by == "texts" and not benchmark.grader:
        raise ConfigError(
            "Which grader decides what answers are correct?", hint="Set ++eval_type, for example math or exact."
        )
    if options.training_data is not None:
        return benchmark, Path(options.training_data)
    return benchmark, load_rows(benchmark, options.split, options.data_dir)


def _able(trainer: Trainer, options: Options) -> DistillingTrainer:
    """Return the trainer. Raises ConfigError for one that lacks on-policy distillation."""
    if not isinstance(trainer, DistillingTrainer):
        raise unsupported(options.backend, "on-policy distillation", ABLE)
    return trainer
