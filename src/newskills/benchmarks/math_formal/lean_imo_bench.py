# SPDX-License-Identifier: Apache-2.0
"""The sixty problems of IMO-ProofBench as theorems of Lean 4 (Luong et al. 2025, arXiv:2511.01846)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.lean import lean_problem


def row(raw: Row, index: int) -> Row:
    problem = lean_problem(raw["Lean Statement"])
    answer = raw["Short Answer"].strip()
    return {
        "id": raw["Problem ID"],
        "name": raw["Problem ID"],
        "split": "test",
        "header": problem.header,
        "informal_prefix": problem.prefix,
        "formal_statement": problem.statement,
        "problem": raw["Problem"],
        **({"expected_answer": answer} if answer else {}),
        "reference_solution": raw["Solution"],
        "category": raw["Category"],
        "level": raw["Level"],
        "subset_for_metrics": "basic" if "-Basic-" in raw["Problem ID"] else "advanced",
    }


BENCHMARK = Benchmark(
    name="lean-imo-bench",
    category="math-formal",
    title="IMO-ProofBench in Lean 4",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/google-deepmind/superhuman/main/imobench/lean_proof_bench.csv",
            format="csv",
            revision="a02069ef66dbae4c5b0713ba0dc144a35375558f",
            sha256="6650004fac2fc246692508a27a0fd35d3bd22c74d3a24d369210d97b70a0dfa7",
        ),
    ),
    row=row,
    prompt="lean4/formal-proof",
    grader="lean4-proof",
    metric="lean4-proof",
    items={"test": 60},
    licence="CC-BY-4.0",
    homepage="https://github.com/google-deepmind/superhuman",
    citation="arXiv:2511.01846",
    needs_sandbox=True,
    traps=(
        "Where a problem asks for an answer, the statement gives it.",
        "Needs a Lean 4 project with Mathlib, of late 2025.",
    ),
)
