# SPDX-License-Identifier: Apache-2.0
"""What `ns grpo` trains on: problems, a grader and a reward."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.benchmarks.interactive.environments import split_samples
from newskills.config.layers import Layer
from newskills.pipelines.dry_run import Step
from newskills.pipelines.notices import warn_of_hedges
from newskills.pipelines.pages import prompt_text
from newskills.pipelines.training.methods.explain import explain_batch
from newskills.pipelines.training.methods.grpo_options import GrpoKeys, GrpoOptions
from newskills.pipelines.training.methods.held_out import (
    held_out_of,
    measured_by,
    print_remark,
    questions_in,
    split_questions,
)
from newskills.pipelines.training.methods.pipeline import PlannedTraining, TrainingPipeline, TrainingRequest
from newskills.pipelines.training.methods.running import ReadyTraining, config_of
from newskills.run.rewarding.questions import QuestionFormat, asking_of
from newskills.run.training.examples import fitting_problems
from newskills.run.training.leakage import check_overlap, texts_of
from newskills.run.training.scoring import TrainedSkill, scoring_all
from newskills.run.training.skill import Skill
from newskills.train.loops.evaluation import HeldOut, kept_apart, steps_between
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.samples import Problem, Scorer
from newskills.train.loops.schedule import steps_of
from newskills.train.trainers import RolloutTrainer


class _Source(NamedTuple):
    """A benchmark to train on, as it was typed (empty: a file of problems) and as it is; the file of its rows, its
    weight among several, and its rows.
    """

    typed: str
    benchmark: Benchmark
    data: Path
    weight: float
    rows: list[Row]


def plan_grpo(request: TrainingRequest[GrpoOptions, GrpoKeys]) -> PlannedTraining:
    """Read and check the problems. Raises ConfigError (keys, solvers), DataError (rows, overlap), UnknownNameError."""
    options, keys = request.options, request.keys
    sources = _problem_sources(options, keys)
    layers = keys.layers(request.overrides)
    rows = [row for source in sources for row in source.rows]
    steps = keys.steps or steps_of(keys.epochs, max(1, len(rows)), keys.batch_size)
    # A text that goes on behind an output needs the chat template, which a name or a file does not have yet.
    if Path(options.model).is_dir():
        early = []
    else:
        early = [Layer("this check", {"inference.endpoint_type": "chat"})]
    askings = [asking_of(source.benchmark, source.data, options.model, [*layers, *early]) for source in sources]
    _check_solvers(options, sources, askings, several=isinstance(request.trainer, RolloutTrainer))
    check_overlap(
        lambda: (text for row in rows for text in texts_of(row)),
        {**_held_out_questions(options, sources), **measured_by(options)},
        allowed=options.allow_overlap,
        say=print_remark,
    )

    def task(base: Path, stack: ExitStack) -> ReadyTraining:
        trained = [_trained_skill(source, base, layers) for source in sources]
        settings: dict[str, Any] = {"steps": steps, "data": f"{sources[0].data}"}
        weights = {}
        if len(sources) > 1:
            weights = {source.benchmark.name: source.weight for source in sources}
            settings |= {"data": [f"{source.data}" for source in sources], "weights": weights}
        method = msgspec.structs.replace(config_of(GrpoConfig, keys, steps), weights=weights)
        other = stack.enter_context(held_out_of(options, keys, base))
        scorer = stack.enter_context(scoring_all(trained, keys.reward, keys.limit(base)))
        problems, held_out = _split_problems(options, keys, base, trained, scorer, other)
        return ReadyTraining(
            title="GRPO",
            base=base,
            method=method,
            data=RewardedProblems(problems, scorer),
            settings=settings,
            held_out=_with_interval(held_out, keys) if held_out else None,
        )

    return PlannedTraining(
        steps=_dry_run_steps(options, keys, sources, steps),
        task=task,
        shown=lambda: _show_prompts(sources, askings),
        instead=partial(explain_batch, options, keys) if options.explain_batch else None,
    )


def _trained_skill(source: _Source, base: Path, layers: list[Layer]) -> TrainedSkill:
    asking = asking_of(source.benchmark, source.data, str(base), layers)
    return TrainedSkill(benchmark=source.benchmark, asking=asking, skill=Skill(base, asking), rows=source.rows)


def _split_problems(
    options: GrpoOptions,
    keys: GrpoKeys,
    base: Path,
    trained: list[TrainedSkill],
    scorer: Scorer,
    other: HeldOut | None,
) -> tuple[list[Problem], HeldOut | None]:
    """Return the problems to learn from, and those to measure on. Raises DataError where a prompt leaves no room for a
    reply."""
    room = keys.limit(base), keys.max_tokens, keys.too_long
    problems: list[Problem] = []
    apart: list[Problem] = []
    keeps = other is None and options.eval_data is None
    for entry in trained:
        source = entry.benchmark.name if len(trained) > 1 else ""
        own = [msgspec.structs.replace(entry.skill.problem(row), source=source) for row in entry.rows]
        own = fitting_problems(own, *room, say=print)
        if keeps:
            own, held = kept_apart(own, keys.held_out // len(trained))
            apart += held
        problems += own
    if options.eval_data is not None:
        rows = list(read_rows(Path(options.eval_data)))
        apart = fitting_problems([trained[0].skill.problem(row) for row in rows], *room, say=print)
        if not apart:
            raise DataError(f"{options.eval_data} has no problem to evaluate on.")
    if not apart:
        return problems, other
    longest = max(keys.eval.max_tokens, keys.max_tokens)
    if limit := keys.limit(
        base
    ):  # where the problems are the training's own, nobody has set how long answers may be
        longest = max(keys.max_tokens, min(longest, limit - max(len(problem.prompt) for problem in apart)))
    eval_settings = msgspec.structs.replace(keys.eval, max_tokens=longest)
    return problems, HeldOut(problems=apart, scorer=scorer, settings=eval_settings)


def _with_interval(held_out: HeldOut, keys: GrpoKeys) -> HeldOut:
    """Return the held-out problems with the steps between evaluations, where the user did not set them."""
    if keys.eval.every:
        return held_out
    answers = min(len(held_out.problems), keys.eval.max_problems) * keys.eval.samples
    every = steps_between(answers, keys.batch_size * keys.group_size)
    return msgspec.structs.replace(held_out, settings=msgspec.structs.replace(held_out.settings, every=every))


def _check_solvers(
    options: GrpoOptions, sources: list[_Source], askings: list[QuestionFormat], *, several: bool
) -> None:
    """Check that the solvers can be trained, with this trainer or at all, and work here; `several`: the trainer
    takes several turns per problem. Raises ConfigError."""
    for source, asking in zip(sources, askings, strict=True):
        what = options.benchmark or str(source.data)
        asking.check_one_answer(what)
        if not asking.one_reply and not several:
            raise ConfigError(
                f"--backend={options.backend} samples one reply per problem; {what} takes several "
                f"(solver {asking.config.solved_by}).",
                hint="Use --backend=cpu, trl or tinker.",
            )
        asking.check()


def _show_prompts(sources: list[_Source], askings: list[QuestionFormat]) -> None:
    for source, asking in zip(sources, askings, strict=True):
        if source.rows:
            prompt = prompt_text(asking.request(source.rows[0]))
            sys.stdout.write(f"first prompt of {source.data}:\n{prompt}\n\n")


def _dry_run_steps(options: GrpoOptions, keys: GrpoKeys, sources: list[_Source], steps: int) -> list[Step]:
    """Return what a dry run shows."""
    graders = ", ".join(dict.fromkeys(source.benchmark.grader for source in sources))
    shown: list[Step] = []
    for source in sources:
        remark = f"{len(source.rows)} problems, prompt {source.benchmark.prompt or 'of the rows'}"
        if len(sources) > 1:
            remark += f", weight {source.weight:g}"
        shown.append(("reads", source.data, remark))
    written = f"{steps} steps of {keys.batch_size} × {keys.group_size}, grader {graders}"
    return [*shown, ("writes", Path(options.output_dir), written)]


def _held_out_questions(options: GrpoOptions, sources: list[_Source]) -> dict[str, list[str]]:
    """Return the questions of --eval_data, and of the splits of benchmarks that are measured, where they are here."""
    questions: dict[str, list[str]] = {}
    for source in sources:
        questions |= split_questions(source.typed or None, options.data_dir)
    if options.eval_data is not None:
        questions[options.eval_data] = questions_in(Path(options.eval_data))
    return questions


def _unmasked_rows(rows: Iterable[Row], masked: str | None) -> list[Row]:
    """Return the rows whose `id` is not in the file. Raises DataError where it names none of them."""
    if masked is None:
        return list(rows)
    try:
        ids = set(Path(masked).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{masked} cannot be read: {error}.") from error
    every = list(rows)
    kept = [row for row in every if str(row.get("id")) not in ids]
    if len(kept) == len(every):
        raise DataError(f"No problem has an id listed in {masked}.", hint="It should hold one id per line.")
    return kept


def _problem_sources(options: GrpoOptions, keys: GrpoKeys) -> list[_Source]:
    """Return the prompts, graders and files of problems.

    Raises ConfigError, UnknownNameError, DataError.
    """
    if (options.benchmark is None) == (options.training_data is None):
        raise ConfigError("ns grpo trains on a --benchmark or on --training_data: give one of them.")
    if options.benchmark is None:
        own = Benchmark(name="grpo", category="reasoning", title="problems of the user's own")
        data = Path(str(options.training_data))
        return [_Source("", _with_grader(own, keys), data, 1.0, _unmasked_rows(read_rows(data), keys.masked))]
    words = [word.strip() for word in options.benchmark.split(",") if word.strip()]
    if len(words) > 1:
        _check_mixture(options, keys)
    sources = []
    for name, weight in map(split_samples, words):
        benchmark = get_benchmark(name)
        warn_of_hedges(benchmark)
        data = load_rows(benchmark, options.split, options.data_dir)
        rows = _unmasked_rows(read_rows(data), keys.masked)
        sources.append(_Source(name, _with_grader(benchmark, keys), data, float(weight or 1), rows))
    if any(source.weight <= 0 for source in sources):
        raise ConfigError(f"--benchmark={options.benchmark}: expected weights above 0, as in a:2,b:1.")
    names = [source.benchmark.name for source in sources]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(
            f"--benchmark={options.benchmark} names {twice[0]} twice.", hint="Give it a weight instead."
        )
    return sources


def _check_mixture(options: GrpoOptions, keys: GrpoKeys) -> None:
    """Raise ConfigError for what belongs to a single benchmark."""
    for name, value in (
        ("--eval_data", options.eval_data),
        ("++eval_type", keys.eval_type),
        ("++eval_config", keys.eval_config),
        ("++masked", keys.masked),
    ):
        if value:
            raise ConfigError(
                f"{name} belongs to one benchmark, but --benchmark={options.benchmark} names several."
            )


def _with_grader(benchmark: Benchmark, keys: GrpoKeys) -> Benchmark:
    """Return the benchmark with the grader of the keys."""
    changed: dict[str, Any] = {"grader": keys.eval_type}
    if keys.eval_type is not None or keys.eval_config:
        kept = benchmark.grader_config if keys.eval_type is None else {}
        changed["grader_config"] = {**kept, **keys.eval_config}
    changes = {name: value for name, value in changed.items() if value is not None}
    return msgspec.structs.replace(benchmark, **changes)


PIPELINE = TrainingPipeline(command="grpo", keys=GrpoKeys, plan=plan_grpo, method=lambda _: "grpo")
run, train_grpo, prepare = PIPELINE.run, PIPELINE.result, PIPELINE.prepare
