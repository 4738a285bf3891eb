# SPDX-License-Identifier: Apache-2.0
"""Word problems of algebra text books (He-Yueya et al. 2023, arXiv:2304.09102)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text


def row(raw: Row, index: int) -> Row:
    return {
        "problem": raw["question"],
        "expected_answer": number_text(raw["final_answer"]),
        "section": raw["section"],
        "source": raw["source"],
    }


BENCHMARK = Benchmark(
    name="algebra222",
    category="math-natural",
    title="Algebra: 222 word problems of open text books",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/joyheyueya/declarative-math-word-problem/main/algebra222.csv",
            format="csv",
            revision="7dc99c39f53e108103a84ff8c7ef5d4857ad34ff",
            sha256="9fa0171d2d427c5b3df1c3ba543317e32366ca5d2c0a843f55d40cec6b528a28",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 222},
    licence="CC-BY-SA-4.0",
    homepage="https://github.com/joyheyueya/declarative-math-word-problem",
    citation="arXiv:2304.09102",
    traps=("Some answers are rounded to two decimals (12.33), which the question does not always say.",),
)
