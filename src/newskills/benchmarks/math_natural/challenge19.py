# SPDX-License-Identifier: Apache-2.0
"""The 19 problems of recent competitions that strong models missed most often."""

from newskills.base.benchmark import Benchmark, Evidence, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {key: raw[key] for key in ("id", "problem", "expected_answer")}


BENCHMARK = Benchmark(
    name="challenge19",
    category="math-natural",
    title="Challenge19: competition problems that models miss",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/challenge19/test.txt"
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 19},
    licence="mixed (contest problems)",
    homepage="https://github.com/NVIDIA-NeMo/Skills",
    evidence=(
        Evidence(
            "https://github.com/Spencerx/NeMo-Skills/tree/e06c9b900177be3f60d6a3f99135bb5de9af9bed/nemo_skills/dataset/challenge19",
            "all 19 rows prepared, their own answers graded right",
            "2026-11-23",
        ),
    ),
    traps=(
        "Only 19 problems, chosen because models failed: no measure of ability in general.",
        "Overlaps with comp-math-24-25.",
    ),
)
