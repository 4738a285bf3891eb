# SPDX-License-Identifier: Apache-2.0
"""American Invitational Mathematics Examination 2024, both parts: 30 problems, answers 0 to 999."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {key: raw[key] for key in ("id", "problem", "expected_answer", "reference_solution")}


def of_year(year: int, sha256: str) -> Benchmark:
    """Return the examination of a year; `sha256` is that of its file."""
    name = f"aime{year % 100}"
    return Benchmark(
        name=name,
        category="math-natural",
        title=f"AIME {year}",
        aliases=(f"aime{year}", f"ns_aime{year}"),
        sources=(
            Source(
                url=f"https://raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/{name}/test.txt",
                revision="8b18f3992854bcb668095228a146e214c567b370",
                sha256=sha256,
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


BENCHMARK = of_year(2024, "e428f83ec735201c9db2a232727f4c20dbce87079ed386b6e3fb7f756d078756")
