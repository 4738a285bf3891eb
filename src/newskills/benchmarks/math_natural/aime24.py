# SPDX-License-Identifier: Apache-2.0
"""American Invitational Mathematics Examination 2024, both parts: 30 problems, answers 0 to 999."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {key: raw[key] for key in ("id", "problem", "expected_answer", "reference_solution")}


BENCHMARK = Benchmark(
    name="aime24",
    category="math-natural",
    title="AIME 2024",
    aliases=("aime2024", "ns_aime2024"),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/aime24/test.txt",
            revision="8b18f3992854bcb668095228a146e214c567b370",
            sha256="e428f83ec735201c9db2a232727f4c20dbce87079ed386b6e3fb7f756d078756",
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
