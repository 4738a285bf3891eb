# SPDX-License-Identifier: Apache-2.0
"""American Invitational Mathematics Examination 2025, both parts: 30 problems, answers 0 to 999."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {key: raw[key] for key in ("id", "problem", "expected_answer", "reference_solution")}


BENCHMARK = Benchmark(
    name="aime25",
    category="math-natural",
    title="AIME 2025",
    aliases=("aime2025", "ns_aime2025"),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/aime25/test.txt",
            revision="8b18f3992854bcb668095228a146e214c567b370",
            sha256="b672f9c6660b68dd42f5fc705b17405f24eaa9991c98991d63463c6b683468a8",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 30},
    licence="Apache-2.0",
    homepage="https://maa.org/maa-invitational-competitions/",
    traps=(
        "Only 30 problems: one more right answer is 3.3 points, so the interval matters more than the value.",
        "Answers may be written with leading zeros (016 = 16).",
    ),
)
