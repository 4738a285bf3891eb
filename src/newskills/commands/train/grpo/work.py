# SPDX-License-Identifier: Apache-2.0
"""What `ns grpo` does: problems, a grader and a reward, and a run of reinforcement learning."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.commands.shared.training import (
    FINAL,
    TrainingRun,
    config_of,
    held_out_of,
    identity,
    keys_of,
    launched,
    measured_by,
    questions_in,
    remark,
    run_training,
    split_questions,
)
from newskills.commands.train.grpo import GrpoKeys, Options
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.pages import prompt_text
from newskills.recipes.leakage import check_overlap, texts_of
from newskills.recipes.rolling import roll_out
from newskills.recipes.skill import Skill
from newskills.recipes.training import fitting_problems, model_folder
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.questions import asking_of
from newskills.train.loops.evaluation import HeldOut, kept_apart
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.samples import Problem
from newskills.train.loops.schedule import steps_of
from newskills.train.trainers import RolloutTrainer, make_trainer


def run(parsed: Parsed[Options]) -> int:
    """Returns the exit code. Raises ConfigError (keys, packages), DataError (rows, overlap), TrainingError."""
    options = parsed.options
    keys = keys_of(GrpoKeys, parsed)
    if keys is None:
        return 0
    trainer = make_trainer(options.backend, Path(options.model), keys.trainer)
    benchmark, data = _skill(options, keys)
    out, rows = Path(options.output_dir), _unmasked(read_rows(data), keys.masked)
    steps = keys.steps or steps_of(keys.epochs, max(1, len(rows)), keys.batch_size)
    # A text that goes on behind an output needs the chat template, which a name or a file does not have yet.
    early = [] if Path(options.model).is_dir() else [Layer("this check", {"inference.endpoint_type": "chat"})]
    asking = asking_of(benchmark, data, options.model, [*keys.layers(), *early])
    asking.check_one_answer(options.benchmark or str(data))
    if not asking.one_reply and not isinstance(trainer, RolloutTrainer):
        raise ConfigError(
            f"--backend={options.backend} samples one reply per problem; {options.benchmark or data} takes several "
            f"(solver {asking.config.solved_by}).",
            hint="Use --backend=cpu, trl or tinker.",
        )
    check_overlap(
        lambda: (text for row in rows for text in texts_of(row)),
        {**_held_out_questions(options), **measured_by(options)},
        allowed=options.allow_overlap,
        say=remark,
    )
    if options.dry_run:
        if rows:
            sys.stdout.write(f"first prompt of {data}:\n{prompt_text(asking.request(rows[0]))}\n\n")
        show_dry_run(
            [
                ("reads", options.model, "the model"),
                ("reads", data, f"{len(rows)} problems, prompt {benchmark.prompt or 'of the rows'}"),
                (
                    "writes",
                    out,
                    f"{steps} steps of {keys.batch_size} × {keys.group_size}, grader {benchmark.grader}",
                ),
                ("writes", out / FINAL, "the trained model"),
            ]
        )
        return 0
    if (code := launched("grpo", parsed, keys)) is not None:
        return code
    require_train("torch", "safetensors", "tokenizers")
    base = model_folder(options.model, out / "base_hf_model", say=print)
    asking = asking_of(benchmark, data, str(base), keys.layers())
    skill = Skill(base, asking)
    room = keys.limit(base), keys.max_tokens, keys.too_long
    config = config_of(GrpoConfig, keys, steps)
    settings = {**identity(keys), "steps": steps, "data": str(data)}
    with (
        BatchGrader(benchmark.grader, benchmark.grader_config) as verdict,
        held_out_of(options, keys, base) as other,
        roll_out(skill, asking, base, rows) as rollouts,
    ):
        problems = fitting_problems([skill.problem(row) for row in rows], *room, say=print)
        scorer = msgspec.structs.replace(skill.scorer(verdict, keys.reward), roll_out=rollouts)
        held_out, held_out_problems = other, list[Problem]()
        if options.eval_data is not None:
            rows = list(read_rows(Path(options.eval_data)))
            held_out_problems = fitting_problems([skill.problem(row) for row in rows], *room, say=print)
            if not held_out_problems:
                raise DataError(f"{options.eval_data} has no problem to evaluate on.")
        elif other is None:
            problems, held_out_problems = kept_apart(problems, keys.held_out)
        if held_out_problems:
            longest = max(keys.eval.max_tokens, keys.max_tokens)
            eval_settings = msgspec.structs.replace(keys.eval, max_tokens=longest)
            held_out = HeldOut(problems=held_out_problems, scorer=scorer, settings=eval_settings)
        return run_training(
            options,
            keys,
            TrainingRun(title="GRPO", base=base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: trainer.grpo(problems, config, folder, scorer, hooks),
        )


def _held_out_questions(options: Options) -> dict[str, list[str]]:
    """What --eval_data asks, and the split of the benchmark that is measured, where it is here."""
    questions = split_questions(options.benchmark, options.data_dir)
    if options.eval_data is not None:
        questions[options.eval_data] = questions_in(Path(options.eval_data))
    return questions


def _unmasked(rows: Iterable[Row], masked: str | None) -> list[Row]:
    """The rows whose `id` is not in the file. Raises DataError where it names none of them."""
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


def _skill(options: Options, keys: GrpoKeys) -> tuple[Benchmark, Path]:
    """Prompt, grader and the file of problems."""
    if (options.benchmark is None) == (options.training_data is None):
        raise ConfigError("ns grpo trains on a --benchmark or on --training_data: give one of them.")
    if options.benchmark is not None:
        benchmark = get_benchmark(options.benchmark)
        data = load_rows(benchmark, options.split, options.data_dir)
    else:
        benchmark, data = (
            Benchmark(name="grpo", category="reasoning", title="problems of the user's own"),
            Path(str(options.training_data)),
        )
    changed: dict[str, Any] = {"grader": keys.eval_type}
    if keys.eval_type is not None or keys.eval_config:
        kept = benchmark.grader_config if keys.eval_type is None else {}
        changed["grader_config"] = {**kept, **keys.eval_config}
    changes = {name: value for name, value in changed.items() if value is not None}
    return msgspec.structs.replace(benchmark, **changes), data
