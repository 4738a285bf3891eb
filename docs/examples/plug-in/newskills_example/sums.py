"""Benchmark `example-sums`: rows of a file beside it, graded as mathematics."""

from __future__ import annotations

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {"problem": raw["question"], "expected_answer": raw["answer"]}


BENCHMARK = Benchmark(
    name="example-sums",
    category="math-natural",
    title="Sums of two numbers",
    sources=(Source(path="sums.csv", format="csv"),),
    row=row,
    prompt="generic/math",
    grader="math",
    metric="math",
)
