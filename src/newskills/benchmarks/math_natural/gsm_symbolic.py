# SPDX-License-Identifier: Apache-2.0
"""GSM8K templates with names and numbers drawn anew (Mirzadeh et al. 2024, arXiv:2410.05229)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text


def row(raw: Row, index: int) -> Row:
    solution, mark, answer = raw["answer"].rpartition("####")
    if not mark:
        raise ValueError("the answer has no line that begins with ####")
    return {
        "problem": raw["question"],
        "expected_answer": number_text(answer),
        "reference_solution": solution.strip(),
        "original_id": raw["original_id"],
        "instance": raw["instance"],
    }


def _source(split: str, file: str) -> Source:
    return Source(split=split, github="apple/ml-gsm-symbolic", ref="main", members=f"generated_data/{file}.jsonl")


BENCHMARK = Benchmark(
    name="gsm-symbolic",
    category="math-natural",
    title="GSM-Symbolic: GSM8K templates, 50 instances each",
    sources=(_source("test", "GSM_symbolic"), _source("p1", "GSM_p1"), _source("p2", "GSM_p2")),
    row=row,
    prompt="generic/math",
    items={"test": 5000},
    licence="Apple sample code licence",
    homepage="https://github.com/apple/ml-gsm-symbolic",
    citation="arXiv:2410.05229",
    unverified=True,
    traps=(
        "50 instances of each of 100 problems: they are not independent, so look at the spread over `instance`, too.",
        "The splits p1 and p2 add one and two clauses to the problems.",
    ),
)
