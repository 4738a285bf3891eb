# SPDX-License-Identifier: Apache-2.0
"""Multiple-choice problems of SAT examinations of May 2023 (Azerbayev et al. 2023, arXiv:2310.10631)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices, split_options


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"sat_math-{raw['id']}",
        "expected_answer": raw["Answer"],
        **choices(raw["question"], split_options(raw["options"])),
    }


BENCHMARK = Benchmark(
    name="sat_math",
    category="math-natural",
    title="SAT mathematics, May 2023",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/sat_math/test.jsonl",
            revision="a45202bd16f1ec06f433442dc1152d0074773465",
            sha256="96720a1dc496ea72f80db55250290cf9c48e95b657ac2183b7deb1dc4627351f",
        ),
    ),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 32},
    licence="unstated (examination problems)",
    homepage="https://github.com/QwenLM/Qwen2.5-Math",
    citation="arXiv:2310.10631",
    chance=0.25,
    traps=("The options of a question are one text, which is split at its letters.", "Only 32 problems."),
)
