# SPDX-License-Identifier: Apache-2.0
"""The rows of a benchmark, one by one: none lost, none twice, each with a prompt for the model and the judge."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, structs

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.protocols import Solver
from newskills.base.records import Row, Sample
from newskills.base.store import read_rows
from newskills.benchmarks.data import PreparedSplit, load_rows, prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.config.layers import Layer
from newskills.config.values import Text
from newskills.prompts.media import MediaError
from newskills.prompts.renderer import Prompt
from newskills.run.engine.build import RunBuilder
from newskills.run.judging.generation import judge_layer
from newskills.run.planning.config import SOFTWARE_AGENT, GenerationConfig
from newskills.run.planning.plan import BenchmarkRun, WorkPieces, benchmark_units, resolve_config
from newskills.solve.judges.judge import shown_to_judges

ANSWERED = {
    **dict.fromkeys(("generation", "answer", "answer_1", "answer_2"), "the reply"),
    "predicted_answer": "the answer",
    **dict.fromkeys(("reference", "conversation", "criterion"), ""),
    "judge_question": "a question",
}
"""What a judge's prompt may ask for besides the fields of the row."""


class InspectedRow(NamedTuple):
    """A row, and the text that the model is shown last."""

    row: Row
    prompt: str


class Prompts(Struct, frozen=True):
    """`solver` makes the first request, None: it cannot be made here; `judge` None: nobody judges."""

    model: Prompt
    solver: Solver | None
    judge: Prompt | None


class Rows(Struct, kw_only=True):
    """The files of a benchmark by split, the settings of its evaluation, and what is wrong or should be known."""

    benchmark: Benchmark
    files: dict[str, Path]
    config: GenerationConfig
    prompts: Prompts
    count: int = 0
    problems: list[str] = []
    notes: list[str] = []


def find_rows(
    benchmark: Benchmark,
    data_dir: Path | None,
    fetch: FetchOptions,
    splits: Sequence[str] = (),
    settings: Mapping[str, Text] = {},
) -> Rows:
    """Find the rows and prepare what is not there. Raises NewskillsError where there are no rows, or nothing can
    evaluate them.

    `splits`: only these; none: all there are. `settings`: `++` keys of the evaluation.
    """
    problems: list[str] = []
    notes: list[str] = []
    done = prepare(benchmark, data_dir=data_dir, splits=splits, options=fetch)
    for split in done.splits:
        problems += _count_problems(benchmark, split)
        notes += _notice_lines(split)
    notes += [f"split {split} is not checked: {why}" for split, why in done.missing.items()]
    path = load_rows(benchmark, "", data_dir)
    config = _benchmark_config(benchmark, path, settings)
    files = {benchmark.split: path} | {split.split: split.path for split in done.splits}
    prompts = _benchmark_prompts(benchmark, config, notes)
    return Rows(benchmark=benchmark, files=files, config=config, prompts=prompts, problems=problems, notes=notes)


def look_through(rows: Rows, most: int) -> list[InspectedRow]:
    """Read all splits; return `most` rows of the default one (-1 = all) in a random choice that is always the same.

    What is wrong with them is added to `rows.problems`. Raises DataError for a file that is no JSONL.
    """
    chosen: list[InspectedRow] = []
    for split, path in rows.files.items():
        default = split == rows.benchmark.split
        limit = most if default else 0
        count, kept = _read_split(rows, split, path, limit)
        if default:
            rows.count, chosen = count, kept
    return chosen


def _read_split(rows: Rows, split: str, path: Path, most: int) -> tuple[int, list[InspectedRow]]:
    """Read a split; return (number of rows, a sample of them drawn by algorithm R of Vitter 1985)."""
    draw = random.Random(rows.benchmark.name)  # noqa: S311 - repeatable on purpose, no secret
    seen: set[str] = set()
    kept: list[InspectedRow] = []
    unfit: list[str] = []
    without: list[str] = []
    count = 0
    for row in read_rows(path):
        count += 1
        identity = str(row.get("id"))
        if identity in seen:
            rows.problems.append(f"{split}: the id '{identity}' is used twice")
        seen.add(identity)
        try:
            text = _last_text(rows.prompts, row)
        except MediaError as error:
            without.append(str(error))
            text = str(row.get("question", ""))
        except NewskillsError as error:
            unfit.append(str(error))
            continue
        if most < 0 or len(kept) < most:
            kept.append(InspectedRow(row, text))
        elif (place := draw.randrange(count)) < most:
            kept[place] = InspectedRow(row, text)
    if without:
        rows.notes.append(f"{split}: {len(without)} of {count} rows lack their image or audio: {without[0]}")
    if unfit:
        rows.problems.append(f"{split}: {len(unfit)} of {count} rows have no prompt: {unfit[0]}")
    return count, kept


def _last_text(prompts: Prompts, row: Row) -> str:
    """Return the last text for the model. Raises DataError, also where the judge cannot be asked."""
    if prompts.judge is not None:
        prompts.judge.messages(shown_to_judges({**row, **ANSWERED}))
    if prompts.solver is None:
        content: object = prompts.model.messages(row)[-1].content
    else:
        request = prompts.solver.request(Sample(id=str(row.get("id")), row=row))
        content = request.messages[-1].content if request.messages else request.prompt
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content)
    if not content:
        raise ConfigError(f"the prompt is empty for row {row.get('id')}")
    return str(content)


def _count_problems(benchmark: Benchmark, split: PreparedSplit) -> list[str]:
    made = split.provenance
    documented_rows = benchmark.items.get(split.split, made.rows)
    partial = any(source.partial for source in benchmark.sources if source.split == split.split)
    if partial:
        lacking = made.rows > documented_rows
    else:
        lacking = made.rows != documented_rows
    if lacking:
        problems = [f"{split.split}: {made.rows} rows, expected {documented_rows}"]
    else:
        problems = []
    dropped = sum(made.dropped.values())
    if made.rows + dropped < made.source_rows:
        lost = made.source_rows - made.rows - dropped
        problems.append(f"{split.split}: {lost} of {made.source_rows} rows of the source are lost")
    return problems


def _notice_lines(split: PreparedSplit) -> list[str]:
    made = split.provenance
    several = made.rows + sum(made.dropped.values()) > made.source_rows
    if several:
        expanded = [f"{split.split}: {made.rows} rows of {made.source_rows} of the source"]
    else:
        expanded = []
    return [*expanded, *(f"{split.split}: {text}" for text in split.notices)]


def _benchmark_config(benchmark: Benchmark, path: Path, settings: Mapping[str, Text]) -> GenerationConfig:
    """Return the settings with which `ns eval` would run the benchmark once."""
    run = BenchmarkRun(name=benchmark.name, benchmark=benchmark, samples=0, split=benchmark.split, input_file=path)
    (planned,) = benchmark_units(
        run, results=Path(), pieces=WorkPieces(), layers=(Layer("command line", settings),)
    )
    return planned.unit.config


def _benchmark_prompts(benchmark: Benchmark, config: GenerationConfig, notes: list[str]) -> Prompts:
    with closing(RunBuilder(os.environ)) as builder:
        judge = None
        if benchmark.judge is not None:
            files: Sequence[Layer] = [Layer("rows", {"input_file": config.input_file, "output_file": "-"})]
            judge = builder.prompt(
                resolve_config([*files, judge_layer(benchmark.judge, Path(config.input_file).parent)]).value
            )
        prompt = builder.prompt(config)
        if benchmark.solver == SOFTWARE_AGENT:
            config = structs.replace(config, agent="bash")  # a run names one; the first will do here
        try:
            solver: Solver | None = builder.solver(config, prompt)
        except NewskillsError as error:
            solver = None
            notes.append(f"prompts are checked without the solver: {error.message}")
        return Prompts(prompt, solver, judge)
