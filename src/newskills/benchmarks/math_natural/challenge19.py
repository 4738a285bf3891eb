# SPDX-License-Identifier: Apache-2.0
"""The 19 problems of recent competitions that strong models missed most often."""

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Source
from newskills.base.records import Row

_CMIMC = "cmimc_2025"
_CHOSEN = {
    f"{_CMIMC}-": "5 7 18 34",
    "aime24-": "7 14 26",
    "hmmt_N_2024_": "hmic_1 guts_19 theme_7 theme_9",
    "hmmt_F_2024_": "guts_28 guts_29 combinatorics_1 combinatorics_4 combinatorics_9 combinatorics_10 algebra_10",
    "hmmt_F_2025_": "team_4",
}
_IDS = {f"{contest}{name}" for contest, names in _CHOSEN.items() for name in names.split()}


def row(raw: Row, index: int) -> Row | Drop:
    identity = raw["id"] if "id" in raw else f"{_CMIMC}-{raw['problem_idx']}"
    answer = str(raw["expected_answer"] if "expected_answer" in raw else raw["answer"])
    if identity not in _IDS or not answer.isdecimal():
        return OTHER_SPLIT
    return {"id": identity, "problem": raw["problem"], "expected_answer": answer}


BENCHMARK = Benchmark(
    name="challenge19",
    category="math-natural",
    title="Challenge19: competition problems that models miss",
    sources=(
        Source(
            hf="MathArena/cmimc_2025",
            hf_split="train",
            url="https://raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/comp-math-24-25/test.txt",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 19},
    licence="mixed (contest problems)",
    homepage="https://github.com/NVIDIA-NeMo/Skills",
    unverified=True,
    traps=(
        "Only 19 problems, chosen because models failed: no measure of ability in general.",
        "Overlaps with comp-math-24-25.",
    ),
)
