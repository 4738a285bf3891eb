# SPDX-License-Identifier: Apache-2.0
"""A small benchmark in a file of its own, a server that knows some of its answers, and records of such a run."""

from __future__ import annotations

from typing import Any

from tests.server import Answer, Script

BENCHMARK = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(6):
        yield {"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}

BENCHMARK = Benchmark(
    name="own-sums", category="math-natural", title="Sums", generate_rows=rows, prompt="generic/math",
    grader="math", metric="math", samples=0,
)
"""
ANSWERS = Script(
    models=("my-model",),
    answer=Answer(kind="table", table={f"Add {n} and {n}.": str(2 * n) for n in range(4)}),
)
"""Four of the six are answered correctly, the others with 42."""


def records(right: int = 4) -> list[dict[str, Any]]:
    """Records of the six problems, of which the first `right` are correct."""
    return [
        {
            "id": f"s{n}",
            "problem": f"Add {n} and {n}.",
            "expected_answer": str(2 * n),
            "generation": f"\\boxed{{{2 * n if n < right else -1}}}",
            "predicted_answer": str(2 * n if n < right else -1),
            "symbolic_correct": n < right,
            "num_generated_tokens": 5,
            "num_input_tokens": 20,
        }
        for n in range(6)
    ]
