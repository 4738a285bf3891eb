# SPDX-License-Identifier: Apache-2.0
"""American Invitational Mathematics Examination 2024 in the wording of the Art of Problem Solving wiki."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"aime24-artofproblemsolving-{raw['id']}",
        "problem": raw["problem"],
        "expected_answer": str(int(raw["answer"])),
        "reference_solution": raw["solution"],
        "url": raw["url"],
    }


BENCHMARK = Benchmark(
    name="aime24-artofproblemsolving",
    category="math-natural",
    title="AIME 2024 as worded in the Art of Problem Solving wiki",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/aime24/test.jsonl",
            revision="a45202bd16f1ec06f433442dc1152d0074773465",
            sha256="af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 30},
    licence="unstated (contest problems)",
    homepage="https://artofproblemsolving.com/wiki/",
    traps=(
        "The problems of aime24 in other words: a difference between the two is an effect of wording, or noise.",
        "Only 30 problems: look at the interval.",
    ),
)
