# SPDX-License-Identifier: Apache-2.0
"""Olympiad problems with answers that need a judge (Gao et al. 2024, arXiv:2410.07985)."""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row
from newskills.benchmarks.text import rename_columns


def row(raw: Row, index: int) -> Row:
    return rename_columns(raw, answer="expected_answer", solution="reference_solution")


BENCHMARK = Benchmark(
    name="omni-math",
    category="math-natural",
    title="Omni-MATH: olympiad problems",
    sources=(Source(url="https://raw.githubusercontent.com/KbsdJames/Omni-MATH/refs/heads/main/Omni-Math.jsonl"),),
    row=row,
    prompt="generic/math",
    judge=Judge(kind="math_judge", model="gpt-4.1", server_type="openai"),
    items={"test": 4428},
    licence="Apache-2.0",
    homepage="https://github.com/KbsdJames/Omni-MATH",
    citation="arXiv:2410.07985",
    unverified=True,
    traps=(
        "Many answers are sentences or whole proofs: judge_correct is the number to quote.",
        "domain is a list of paths, difficulty a number from 1 to 10.",
    ),
)
