# SPDX-License-Identifier: Apache-2.0
"""AIME 2024 and 2025 with HMMT of November 2024, February 2024 and February 2025."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_ALWAYS = ("id", "subset_for_metrics", "problem", "expected_answer")


def row(raw: Row, index: int) -> Row:
    return {key: raw[key] for key in _ALWAYS} | {key: raw[key] for key in ("reference_solution",) if key in raw}


BENCHMARK = Benchmark(
    name="comp-math-24-25",
    category="math-natural",
    title="Competitions of 2024 and 2025: AIME and HMMT",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/comp-math-24-25/test.txt",
            revision="8b18f3992854bcb668095228a146e214c567b370",
            sha256="c83c51386c1bb15e26b665caf880e8158e57585bffb3579a824f93eec4c49190",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 256},
    licence="Apache-2.0 (contest problems)",
    homepage="https://github.com/NVIDIA-NeMo/Skills",
    citation="arXiv:2504.16891",
    traps=(
        "subset_for_metrics divides the table: aime24, aime25 and hmmt-24-25 (196 problems).",
        "Contains all of aime24 and aime25: do not average it with them.",
    ),
)
