# SPDX-License-Identifier: Apache-2.0
"""What a training is evaluated on, and whether it trains on the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.config.layers import Layer
from newskills.pipelines.training.methods.options import LocalOptions, StepKeys
from newskills.run.rewarding.questions import asking_of
from newskills.run.rewarding.reward import RewardConfig
from newskills.run.rewarding.rollouts import with_code
from newskills.run.training.examples import context_of, fitting_problems
from newskills.run.training.leakage import question_of
from newskills.run.training.prompt_frames import Decode, prompt_difference
from newskills.run.training.scoring import TrainedSkill, open_scorer
from newskills.run.training.skill import Skill
from newskills.train.backends.trl.launching import first_process
from newskills.train.loops.evaluation import HeldOut
from newskills.train.verbs import Datum


@contextmanager
def held_out_of(options: LocalOptions, keys: StepKeys, base: Path) -> Iterator[HeldOut | None]:
    """Yield the problems of --eval_benchmark, or None. Raises UnknownNameError, DataError."""
    if options.eval_benchmark is None:
        yield None
        return
    benchmark = get_benchmark(options.eval_benchmark)
    data = load_rows(benchmark, options.eval_split, options.data_dir)
    rows = list(read_rows(data))
    settings = keys.eval
    changes: dict[str, Any] = {}
    if keys.chat_template_kwargs:
        changes["chat_template_kwargs"] = keys.chat_template_kwargs
    changes["inference.tokens_to_generate"] = settings.max_tokens
    if settings.code_tags is not None:
        changes |= with_code(settings.code_tags, settings.code_executions, settings.max_tokens)
    asking = asking_of(benchmark, data, str(base), [Layer("command line", changes)])
    asking.check_one_answer(f"--eval_benchmark={options.eval_benchmark}")
    asking.check()
    skill = Skill(base, asking)
    problems = [skill.problem(row) for row in rows[: keys.eval.max_problems]]
    room = fitting_problems(problems, context_of(base), keys.eval.max_tokens, "drop", say=print)
    if not room:
        raise DataError(f"No problem of {benchmark.name} ({options.eval_split}) fits into the model's context.")
    trained = TrainedSkill(benchmark=benchmark, asking=asking, skill=skill, rows=rows)
    with open_scorer(trained, RewardConfig(), context_of(base)) as scorer:
        yield HeldOut(problems=room, scorer=scorer, settings=settings)


def measured_by(options: LocalOptions) -> dict[str, list[str]]:
    """Return the questions of --eval_benchmark, by its name. Raises UnknownNameError, DataError."""
    if options.eval_benchmark is None:
        return {}
    benchmark = get_benchmark(options.eval_benchmark)
    data = load_rows(benchmark, options.eval_split, options.data_dir)
    return {f"{benchmark.name} ({options.eval_split})": questions_in(data)}


def split_questions(name: str | None, data_dir: str | None) -> dict[str, list[str]]:
    """Return the questions of the split that a benchmark measures, by its name; none where it is not prepared here.

    Raises UnknownNameError.
    """
    if name is None:
        return {}
    benchmark = get_benchmark(name)
    try:
        rows = load_rows(benchmark, benchmark.split, data_dir)
    except DataError:  # not prepared: nobody can have measured by it here
        return {}
    return {f"{benchmark.name} ({benchmark.split})": questions_in(rows)}


def questions_in(data: Path) -> list[str]:
    """Return the questions of the rows, as far as they are in a field that is known. Raises DataError."""
    return [text for row in read_rows(data) if (text := question_of(row)) is not None]


def remark_prompts(
    options: LocalOptions, examples: Sequence[Datum], held_out: HeldOut | None, decode: Decode
) -> None:
    """Print a remark where training prompts are asked otherwise than those of --eval_benchmark."""
    if held_out is None or options.eval_benchmark is None:
        return
    name = f"--eval_benchmark={options.eval_benchmark}"
    if sentence := prompt_difference(examples, held_out.problems, decode, name):
        print_remark(sentence)


def print_remark(text: str) -> None:
    """Print a remark beside the results, once however many processes train together."""
    if first_process():
        sys.stderr.write(f"{text}\n")
