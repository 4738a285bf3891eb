# SPDX-License-Identifier: Apache-2.0
"""Yes or no where the steps are not in the question (Geva et al. 2021, arXiv:2101.02235), as in BIG-bench."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import yes_no


def row(raw: Row, index: int) -> Row:
    scores = raw["target_scores"]
    if sorted(scores.values()) != [0, 1]:
        raise ValueError(f"target_scores is {scores}; one answer of two should have 1")
    return {**yes_no(raw["input"], bool(scores["Yes"])), "reference_solution": raw["target"]}


BENCHMARK = Benchmark(
    name="strategyqa",
    category="reasoning",
    title="StrategyQA: yes or no in hidden steps",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/google/BIG-bench/main/bigbench/benchmark_tasks/strategyqa/task.json",
            format="json",
            records=("examples",),
        ),
    ),
    row=row,
    prompt="generic/yes-no",
    grader="multichoice",
    metric="multichoice",
    items={"test": 2290},
    licence="Apache-2.0",
    homepage="https://github.com/google/BIG-bench/tree/main/bigbench/benchmark_tasks/strategyqa",
    citation="arXiv:2101.02235",
    chance=0.5,
    unverified=True,
    traps=("Some answers have changed since 2021.",),
)
