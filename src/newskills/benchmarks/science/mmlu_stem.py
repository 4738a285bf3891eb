# SPDX-License-Identifier: Apache-2.0
"""The 18 subjects of MMLU in science, technology, engineering and mathematics (Hendrycks et al., arXiv:2009.03300)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    return {
        "expected_answer": "ABCD"[raw["answer"]],
        **choices(raw["question"], raw["choices"]),
        "subset_for_metrics": raw["type"],
    }


BENCHMARK = Benchmark(
    name="mmlu_stem",
    category="science",
    title="MMLU: science, technology, engineering, mathematics",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/mmlu_stem/test.jsonl",
            revision="a45202bd16f1ec06f433442dc1152d0074773465",
            sha256="fd7c16f96067d285638abb5aaef9cd8a063b11454e14cb64df93141a58691478",
        ),
    ),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 3018},
    licence="unstated (MMLU: MIT)",
    homepage="https://github.com/QwenLM/Qwen2.5-Math",
    citation="arXiv:2009.03300",
    chance=0.25,
    traps=("A subset of mmlu: do not average it with that.",),
)
