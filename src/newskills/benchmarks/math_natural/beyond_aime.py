# SPDX-License-Identifier: Apache-2.0
"""100 problems harder than AIME, with integer answers (ByteDance Seed 2025)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import rename_columns


def row(raw: Row, index: int) -> Row:
    return rename_columns(raw, problem="problem", answer="expected_answer")


BENCHMARK = Benchmark(
    name="beyond-aime",
    category="math-natural",
    title="BeyondAIME: harder than AIME, integer answers",
    sources=(Source(hf="ByteDance-Seed/BeyondAIME"),),
    row=row,
    prompt="generic/math",
    items={"test": 100},
    licence="CC0-1.0",
    homepage="https://huggingface.co/datasets/ByteDance-Seed/BeyondAIME",
    citation="arXiv:2504.13914",
    unverified=True,
    traps=("Only 100 problems: look at the interval.",),
)
