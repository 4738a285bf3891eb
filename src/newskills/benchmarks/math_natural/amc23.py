# SPDX-License-Identifier: Apache-2.0
"""American Mathematics Competitions 12, 2023: 40 problems with numeric answers."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"amc23-{raw['id']}",
        "problem": raw["problem"],
        "expected_answer": number_text(raw["answer"]),
        "url": raw["url"],
    }


BENCHMARK = Benchmark(
    name="amc23",
    category="math-natural",
    title="AMC 12, 2023",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/amc23/test.jsonl",
            revision="a45202bd16f1ec06f433442dc1152d0074773465",
            sha256="43707e1ca784602d8479de24ee8ce36609dbebc46dd152b0b12a46611aa898a4",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 40},
    licence="unstated (contest problems)",
    homepage="https://github.com/QwenLM/Qwen2.5-Math",
    traps=(
        "Answers are floats in the source (27.0) and integers here (27).",
        "Only 40 problems: look at the interval.",
    ),
)
