# SPDX-License-Identifier: Apache-2.0
"""400 olympiad problems with short answers (Luong et al. 2025, arXiv:2511.01846)."""

import csv
import io
from collections.abc import Iterable, Iterator

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def read_table_rows(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of the file, which is one text. An answer that a late quotation mark has put into its problem is
    taken out of it."""
    (file,) = raw
    columns, *lines = csv.reader(io.StringIO(file["text"].removeprefix("\ufeff"), newline=""))
    for cells in lines:
        if len(cells) == len(columns) - 1:
            problem, _, answer = cells[1].rpartition("\n,")
            cells[1:2] = [problem, answer.removesuffix('"')]
        yield dict(zip(columns, cells, strict=True))


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["Problem ID"],
        "problem_id": raw["Problem ID"],
        "problem": raw["Problem"].strip(),
        "expected_answer": raw["Short Answer"].strip(),
        "category": raw["Category"],
        "subcategory": raw["Subcategory"],
        "source": raw["Source"],
    }


BENCHMARK = Benchmark(
    name="imo-answerbench",
    category="math-natural",
    title="IMO-AnswerBench: olympiad problems with short answers",
    aliases=("imo_answerbench",),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/google-deepmind/superhuman/main/imobench/answerbench_v2.csv",
            format="text",
            revision="a02069ef66dbae4c5b0713ba0dc144a35375558f",
            sha256="275877a9d988d85278fad3a5f8a41d7f83393a60bf259531ec0a5161e6b21cf9",
        ),
    ),
    join=read_table_rows,
    row=row,
    prompt="generic/math",
    judge=Judge(
        prompt="judge/imo_answerbench",
        kind="math_judge",
        model="gemini-2.5-pro",
        server_type="gemini",
        model_defaults={"inference.reasoning_effort": "dynamic"},
    ),
    items={"test": 400},
    licence="CC-BY-4.0",
    homepage="https://github.com/google-deepmind/superhuman",
    citation="arXiv:2511.01846",
    traps=(
        "Answers are formulas, lists of functions or sentences: judge_correct is the number to quote.",
        "This is the second version of the file; the first one (answerbench.csv) has some other answers.",
        "In one row of the file the answer stands inside of the problem; it is moved to its place.",
    ),
)
