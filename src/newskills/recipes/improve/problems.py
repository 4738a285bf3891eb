# SPDX-License-Identifier: Apache-2.0
"""Problems to train on and problems to evaluate on: which, and that none is in both."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.base.terminal import counted
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import NotPreparedError, load_rows, prepare
from newskills.recipes.improve.records import ImproveSpec, ImproveStage
from newskills.run.planning.plan import BenchmarkRun
from newskills.run.training.examples import check_rows
from newskills.run.training.leakage import FIELDS, check_overlap, question_of, texts_of
from newskills.train.data.filters.contamination import text_digest
from newskills.train.data.overlap import OverlapIndex

COMMON_WORD_SHARE = 0.5
"""Share of the held-out problems from which a word belongs to their form, as in `Sort these numbers`."""
_WORD = re.compile(r"\w+")


class TrainingPool(Struct, frozen=True, kw_only=True):
    """What a round may train on: rows with an id each, the file that they are from, replies of others to them (problem
    id → texts), and rows for `ns sft` (`examples`)."""

    rows: list[Row]
    source: Path
    solutions: Mapping[str, Sequence[str]]
    examples: list[Row]

    @property
    def size(self) -> str:
        if self.examples:
            examples = f" and {counted(len(self.examples), 'example')}"
        else:
            examples = ""
        return f"{counted(len(self.rows), 'problem')}{examples}"


class ImproveProblems(Struct, frozen=True, kw_only=True):
    """None that is trained on is evaluated on.

    pools      of the stages, then of the rounds after them, if there may be any
    evaluated  the held-out problems, then the guards
    """

    benchmark: Benchmark
    pools: list[TrainingPool]
    evaluated: list[BenchmarkRun]

    def pool(self, number: int) -> TrainingPool:
        """Return the problems of a round, counted from 1."""
        return self.pools[min(number, len(self.pools)) - 1]


def load_problems(spec: ImproveSpec, say: PrintLine, *, writes: bool = True) -> ImproveProblems:
    """Read the problems to train on and those to evaluate on. `writes`: data that is made here, without a download, is
    made where it is missing.

    Raises UnknownNameError, ConfigError (replies of others for GRPO, a guard named twice), DataError (no data,
    held-out problems among those to train on, none left).
    """
    benchmark = get_benchmark(spec.benchmark)
    evaluated = [_evaluation_run(name, spec, writes=writes) for name in (spec.benchmark, *spec.guards)]
    names = [run.name for run in evaluated]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"--guard: {twice[0]} is evaluated already; name other benchmarks, each once.")
    questions = {
        f"{run.name} ({run.split})": [text for row in read_rows(run.input_file) if (text := question_of(row))]
        for run in evaluated
    }
    rounds = range(1, min(spec.rounds, len(spec.stages) + 1) + 1)
    return ImproveProblems(
        benchmark=benchmark,
        pools=[
            _training_pool(spec, spec.stage(number), benchmark, questions, say, writes=writes) for number in rounds
        ],
        evaluated=evaluated,
    )


def _training_pool(
    spec: ImproveSpec,
    stage: ImproveStage,
    benchmark: Benchmark,
    questions: Mapping[str, Sequence[str]],
    say: PrintLine,
    *,
    writes: bool,
) -> TrainingPool:
    """Return the stage's training pool, without what is almost like the `questions` that are evaluated on."""
    if stage.method == "grpo" and (stage.solutions or stage.examples):
        what = "--solutions" if stage.solutions else "examples"
        raise ConfigError(
            f"GRPO trains on the model's own samples, so {what} has no effect.",
            hint="Leave it out, or use --method=sft.",
        )
    if stage.needs_problems:
        source = stage.training_data or _data_path(spec.benchmark, spec.split, spec.data_dir, writes=writes)
        rows = _with_ids(list(read_rows(source)), source)
    else:
        source, rows = stage.examples[0], list[Row]()
    examples = [row for path in stage.examples for row in _read_examples(path)]
    check_overlap(
        lambda: (text for row in (*rows, *examples) for text in texts_of(row)),
        questions,
        allowed=False,
        say=say,
        remedy="Remove them from --training_data, or use another --split: ns improve never trains on what it "
        "evaluates on.",
    )
    everything = [text for texts in questions.values() for text in texts]
    training = decontaminate_rows(rows, everything, spec.keys.overlap_share)
    if dropped := len(rows) - len(training):
        say(f"left out: {counted(dropped, 'training problem')} almost like a problem that is evaluated on")
    if stage.needs_problems and not training:
        raise DataError(
            f"No training problem is left: all {len(rows)} of {source} are almost like problems that are evaluated on.",
            hint="Give others (--training_data, --split), or raise ++overlap_share if they only share a form of words.",
        )
    apart = decontaminate_rows(examples, everything, spec.keys.overlap_share)
    if dropped := len(examples) - len(apart):
        say(f"left out: {counted(dropped, 'example')} almost like a problem that is evaluated on")
    return TrainingPool(
        rows=training,
        source=source,
        solutions=_solutions_by_problem(stage.solutions, {row["id"] for row in rows}),
        examples=apart,
    )


def draw_problems(rows: Sequence[Row], number: int, count: int, seed: int) -> list[Row]:
    """Return the problems of a round, counted from 1: the next `count` rows in random order, drawn anew after the last
    row."""
    if count >= len(rows):
        return list(rows)
    start, order = (number - 1) * count, list[int]()
    while len(order) < start + count:
        again = list(range(len(rows)))
        random.Random(f"{seed}-{len(order)}").shuffle(again)  # noqa: S311 - no secret
        order += again
    return [rows[index] for index in dict.fromkeys(order[start : start + count])]


def decontaminate_rows(rows: Sequence[Row], evaluated: Sequence[str], share: float) -> list[Row]:
    """Return the rows whose question is none of `evaluated`, by hash and by shared words (`train.data.overlap`).

    Words that most of the evaluated problems have belong to their form and tell nothing. Raises DataError for a row
    without a question.
    """
    telling = _distinctive_words(evaluated)
    hashes = {text_digest(" ".join(text.casefold().split())) for text in evaluated}
    index = OverlapIndex(map(telling, evaluated), share=share)
    kept = []
    for number, row in enumerate(rows, 1):
        text = question_of(row) or row.get("input")
        if not isinstance(text, str):
            raise DataError(
                f"Training problem {number} has no question to compare with those that are evaluated on.",
                hint=f"Its text must be in one of the fields {', '.join(FIELDS)}, messages, input.",
            )
        if text_digest(" ".join(text.casefold().split())) not in hashes and not index.holds(telling(text)):
            kept.append(row)
    return kept


def _distinctive_words(texts: Sequence[str]) -> Callable[[str], str]:
    """Return a function that takes the words out of a text that most of `texts` have; where no other is left, it
    returns the whole text."""
    counts = Counter(word for text in texts for word in set(_WORD.findall(text.casefold())))
    common = {word for word, count in counts.items() if count > max(COMMON_WORD_SHARE * len(texts), 2)}

    def telling(text: str) -> str:
        return " ".join(word for word in _WORD.findall(text.casefold()) if word not in common) or text

    return telling


def _read_examples(path: Path) -> list[Row]:
    """Read the rows of a file of examples. Raises DataError where there are none, or one cannot be trained on."""
    rows = list(read_rows(path))
    check_rows(rows, path)
    return rows


def _evaluation_run(asked_name: str, spec: ImproveSpec, *, writes: bool) -> BenchmarkRun:
    """Plan one greedy answer to each problem of the benchmark."""
    keys, benchmark = spec.keys, get_benchmark(asked_name)
    settings = {
        "max_samples": keys.held_out or -1,
        "inference.tokens_to_generate": spec.tested_tokens,
        "inference.temperature": 0.0,
    }
    return BenchmarkRun(
        name=benchmark.name,
        benchmark=msgspec.structs.replace(benchmark, defaults={**benchmark.defaults, **settings}),
        samples=0,
        split=benchmark.split,
        input_file=_data_path(asked_name, benchmark.split, spec.data_dir, writes=writes),
    )


def _data_path(asked_name: str, split: str, data_dir: Path | None, *, writes: bool) -> Path:
    """Return the path of the prepared data; data that is made here, without a download, is made if `writes`. Raises
    DataError."""
    benchmark = get_benchmark(asked_name)
    try:
        return load_rows(benchmark, split, data_dir, asked_name=asked_name)
    except NotPreparedError:
        if benchmark.generate_rows is None or not writes:
            raise
    return prepare(benchmark, data_dir=data_dir, splits=[split]).splits[0].path


def _with_ids(rows: Sequence[Row], source: Path) -> list[Row]:
    if not rows:
        raise DataError(f"{source} has no problems to train on.")
    named = [{**row, "id": str(row.get("id", f"problem-{number}"))} for number, row in enumerate(rows, 1)]
    twice = [name for name, count in Counter(row["id"] for row in named).items() if count > 1]
    if twice:
        raise DataError(
            f"{source} has several problems with the id {twice[0]}.", hint="Each needs an id of its own."
        )
    return named


def _solutions_by_problem(files: Sequence[Path], ids: set[str]) -> dict[str, list[str]]:
    """Map each problem id to replies. Raises DataError for rows without them, and where none is to a training
    problem."""
    replies: dict[str, list[str]] = {}
    for path in files:
        for number, row in enumerate(read_rows(path), 1):
            if "id" not in row or not isinstance(row.get("generation"), str):
                raise DataError(
                    f"{path}, row {number}: expected the fields `id` (of a training problem) and `generation`.",
                    hint="ns generate and ns eval write such files.",
                )
            replies.setdefault(str(row["id"]), []).append(row["generation"])
    if files and not replies.keys() & ids:
        raise DataError(f"{files[0]} has no reply to any training problem: no id is that of one.")
    return replies
