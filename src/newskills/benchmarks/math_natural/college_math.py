# SPDX-License-Identifier: Apache-2.0
"""Exercises of nine open college text books (Tang et al. 2024, MathScale, arXiv:2403.02884)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import rename_columns


def row(raw: Row, index: int) -> Row:
    return rename_columns(raw, question="problem", answer="expected_answer")


BENCHMARK = Benchmark(
    name="college_math",
    category="math-natural",
    title="College mathematics: exercises of nine text books",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/college_math/test.jsonl",
            revision="a45202bd16f1ec06f433442dc1152d0074773465",
            sha256="91131bc4a355b884fc63ef7c4f048c35adb030004a4cb07b1475698f120aa4a6",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 2818},
    licence="unstated (text books under Creative Commons and GNU FDL; the field license names each)",
    homepage="https://github.com/QwenLM/Qwen2.5-Math",
    citation="arXiv:2403.02884",
    traps=(
        "Some answers are sentences, proofs or families of solutions, which comparison cannot judge fairly.",
        "question_number repeats across books: it is no id.",
    ),
)
