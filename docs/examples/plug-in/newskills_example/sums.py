"""Benchmark `example-sums`: rows of a file beside it, graded as mathematics."""

from newskills.base.benchmark import Benchmark, Source


def row(raw, index):
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
