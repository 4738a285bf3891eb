# SPDX-License-Identifier: Apache-2.0
"""500 test problems of MATH, uniformly drawn (Lightman et al. 2023, arXiv:2305.20050)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["unique_id"],
        "problem": raw["problem"],
        "expected_answer": raw["answer"],
        "reference_solution": raw["solution"],
        "subject": raw["subject"],
        "level": raw["level"],
        "unique_id": raw["unique_id"],
    }


BENCHMARK = Benchmark(
    name="math-500",
    category="math-natural",
    title="MATH-500: a sample of MATH",
    aliases=("math500",),
    sources=(
        Source(
            url="https://github.com/openai/prm800k/raw/main/prm800k/math_splits/test.jsonl",
            sha256="35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 500},
    licence="MIT",
    homepage="https://github.com/openai/prm800k",
    citation="arXiv:2305.20050",
    traps=("The level is an integer here, and a text such as 'Level 3' in the full set.",),
)
