# SPDX-License-Identifier: Apache-2.0
"""Undergraduate science and mathematics from MIT OpenCourseWare (Lewkowycz et al. 2022, arXiv:2206.14858)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import boxed_contents


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"minerva_math-{raw['idx']}",
        "problem": raw["problem"],
        "expected_answer": boxed_contents(raw["solution"])[-1],
        "reference_solution": raw["solution"],
        "type": raw["type"],
    }


BENCHMARK = Benchmark(
    name="minerva_math",
    category="math-natural",
    title="Minerva: quantitative problems of MIT courses",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/minerva_math/test.jsonl",
            revision="a45202bd16f1ec06f433442dc1152d0074773465",
            sha256="0e656b430d3a0a1dab6aa853f453ba3805e28e2cabe4fc72486a897cc09d8ba2",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 272},
    licence="unstated (MIT OpenCourseWare, CC-BY-NC-SA)",
    homepage="https://github.com/QwenLM/Qwen2.5-Math",
    citation="arXiv:2206.14858",
    traps=(
        "The answer is the box of the solution; units stand outside of it.",
        "Answers include scientific notation (4.5e33) and code-like text (np.arcsin(10/13)).",
    ),
)
