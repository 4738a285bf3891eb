# SPDX-License-Identifier: Apache-2.0
"""Reading comprehension of Chinese high-school examinations in English (Lai et al. 2017, arXiv:1704.04683)."""

import ast
from collections.abc import Iterator

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Iterator[Row]:
    """Yield one row per question; an article holds its questions as the text of a Python list."""
    for number, problem in enumerate(ast.literal_eval(raw["problems"]), 1):
        if problem["answer"] not in "ABCD" or len(problem["options"]) != 4:
            raise ValueError(f"question {number} has no answer A to D among four options")
        yield {
            "id": f"race-high-{index}-{number}",
            "expected_answer": problem["answer"],
            **choices(f"{raw['article'].strip()}\n\n{problem['question']}", problem["options"]),
        }


BENCHMARK = Benchmark(
    name="race",
    category="reasoning",
    title="RACE, high school: questions on a text",
    aliases=("race_high",),
    sources=(Source(hf="EleutherAI/race", config="high"),),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 3498},
    licence="for research, not commercial",
    homepage="https://www.cs.cmu.edu/~glai1/data/race/",
    citation="arXiv:1704.04683",
    chance=0.25,
    unverified=True,
    traps=("The source has one row per article, with its questions inside.",),
)
