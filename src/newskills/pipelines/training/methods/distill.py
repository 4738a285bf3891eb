# SPDX-License-Identifier: Apache-2.0
"""What `ns distill` trains on: samples that a teacher scores, or the answers that it writes."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.models.config import ServerConfig
from newskills.pipelines.dry_run import Step
from newskills.pipelines.training.methods.held_out import held_out_of, measured_by, print_remark, split_questions
from newskills.pipelines.training.methods.method_options import DistillKeys, DistillOptions
from newskills.pipelines.training.methods.pipeline import PlannedTraining, TrainingPipeline, TrainingRequest
from newskills.pipelines.training.methods.running import ReadyTraining, config_of
from newskills.pipelines.training.methods.teaching import (
    TeacherAnswers,
    TeacherSource,
    teacher_of,
    write_answers,
    write_examples,
)
from newskills.run.rewarding.questions import asking_of
from newskills.run.training.examples import examples_of, fit_to_length, fitting_problems
from newskills.run.training.leakage import check_overlap, texts_of
from newskills.run.training.skill import Skill
from newskills.train.loops.distill import Distillation, DistillConfig
from newskills.train.loops.schedule import steps_of
from newskills.train.loops.sft import SftConfig

ANSWERS, EXAMPLES = "teacher", "train.jsonl"
"""Where the teacher's graded answers are, and the examples that were made of them, below the output folder."""
TITLE = "distillation"
Request = TrainingRequest[DistillOptions, DistillKeys]


def plan_distillation(request: Request) -> PlannedTraining:
    """Read and check the problems. Raises ConfigError (keys), DataError (rows, overlap), UnknownNameError."""
    options, keys = request.options, request.keys
    benchmark, data = _benchmark_and_problems(options, keys)
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
        say=print_remark,
    )

    def task(base: Path, stack: ExitStack) -> ReadyTraining:
        skill = Skill(base, asking_of(benchmark, data, str(base), [keys.prompt_layer()]))
        student = _Student(base=base, skill=skill, benchmark=benchmark, data=data)
        if options.by == "texts":
            return _by_texts(request, student, stack)
        return _by_logprobs(request, student, stack)

    verb = "asks" if options.teacher_address else "reads"
    steps: list[Step] = [(verb, options.teacher, "the teacher"), ("reads", data, f"{len(rows)} problems")]
    if options.by == "texts":
        steps.append(("writes", request.output_dir / EXAMPLES, "correct answers"))
    return PlannedTraining(steps=steps, task=task)


class _Student(msgspec.Struct, frozen=True, kw_only=True):
    """Who learns what: the model folder, how it is asked, the benchmark and the file of its problems."""

    base: Path
    skill: Skill
    benchmark: Benchmark
    data: Path

    def settings(self, options: DistillOptions, steps: int) -> dict[str, Any]:
        """Return the settings that name the run."""
        names = ("teacher", "teacher_address", "by")
        return {**{name: getattr(options, name) for name in names}, "steps": steps, "data": str(self.data)}


def _by_logprobs(request: Request, student: _Student, stack: ExitStack) -> ReadyTraining:
    options, keys = request.options, request.keys
    problems = fitting_problems(
        [student.skill.problem(row) for row in read_rows(student.data)],
        keys.limit(student.base),
        keys.max_tokens,
        keys.too_long,
        say=print,
    )
    steps = keys.steps or steps_of(keys.epochs, max(1, len(problems)), keys.batch_size)
    held_out = stack.enter_context(held_out_of(options, keys, student.base))
    teacher = stack.enter_context(teacher_of(_teacher_source(options, keys), student.base, keys.trainer, print))
    return ReadyTraining(
        title=TITLE,
        base=student.base,
        method=config_of(DistillConfig, keys, steps),
        data=Distillation(problems=problems, teacher=teacher, stops=student.skill.stops),
        settings=student.settings(options, steps),
        held_out=held_out,
    )


def _by_texts(request: Request, student: _Student, stack: ExitStack) -> ReadyTraining:
    """Let the teacher answer. Raises StoppedError where a signal came."""
    options, keys, out = request.options, request.keys, request.output_dir
    how = TeacherAnswers(
        samples=keys.samples,
        temperature=keys.temperature,
        max_tokens=keys.max_tokens,
        prompt=dict(keys.prompt_layer().values),
    )
    files = write_answers(
        _teacher_source(options, keys), student.benchmark, student.data, how, out / ANSWERS, print
    )
    count = write_examples(files, student.data, student.skill, keys.per_problem, out / EXAMPLES)
    sys.stdout.write(f"{out / EXAMPLES}: {count}\n")
    examples = fit_to_length(
        examples_of(list(read_rows(out / EXAMPLES)), student.skill, out / EXAMPLES),
        keys.limit(student.base),
        keys.too_long,
        say=print,
    )
    steps = keys.steps or steps_of(keys.epochs, max(1, len(examples)), keys.batch_size)
    return ReadyTraining(
        title=TITLE,
        base=student.base,
        method=config_of(SftConfig, keys, steps),
        data=examples,
        settings=student.settings(options, steps),
        held_out=stack.enter_context(held_out_of(options, keys, student.base)),
    )


def _teacher_source(options: DistillOptions, keys: DistillKeys) -> TeacherSource:
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


def _benchmark_and_problems(options: DistillOptions, keys: DistillKeys) -> tuple[Benchmark, Path]:
    """Return the benchmark with prompt and grader, and the file of problems. Raises ConfigError, UnknownNameError,
    DataError."""
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


PIPELINE = TrainingPipeline(
    command="distill",
    keys=DistillKeys,
    plan=plan_distillation,
    method=lambda options: "sft" if options.by == "texts" else "distill",
    able="cpu or tinker, or --by=texts",
    launches=False,
    reads="the student",
)
run, distill_model, prepare = PIPELINE.run, PIPELINE.result, PIPELINE.prepare
