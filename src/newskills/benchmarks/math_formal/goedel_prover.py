# SPDX-License-Identifier: Apache-2.0
"""MiniF2F and MathOlympiadBench as Goedel-Prover-V2 publishes them (Lin et al. 2025, arXiv:2508.03613)."""

from collections.abc import Callable

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.lean import to_prove

_HOME = "https://raw.githubusercontent.com/Goedel-LM/Goedel-Prover-V2/refs/heads/main/dataset"


def minif2f_row(raw: Row, index: int) -> Row:
    """Return the row of a problem whose file has all in one text: header, docstring, theorem."""
    header, prefix, statement = raw["lean4_code"].partition(raw["informal_prefix"])
    if not prefix or not statement:
        raise ValueError("`lean4_code` does not hold `informal_prefix`")
    return _problem_row(raw, header, statement)


def mobench_row(raw: Row, index: int) -> Row:
    return _problem_row(raw, raw["header"], raw["formal_statement"])


def _problem_row(raw: Row, header: str, statement: str) -> Row:
    return {
        "id": raw["problem_id"],
        "name": raw["name"],
        "split": raw["split"],
        "header": header.strip() + "\n\n",
        "informal_prefix": raw["informal_prefix"].rstrip() + "\n",
        "formal_statement": to_prove(statement),
        "goal": "",
    }


def _benchmark(
    name: str,
    title: str,
    file: str,
    sha256: str,
    row: Callable[[Row, int], Row],
    items: int,
    traps: tuple[str, ...],
) -> Benchmark:
    return Benchmark(
        name=name,
        category="math-formal",
        title=title,
        sources=(
            Source(
                url=f"{_HOME}/{file}.jsonl",
                revision="2e9036e118464aa96a8bebaf9f5b9d091aa3585c",
                sha256=sha256,
            ),
        ),
        row=row,
        prompt="lean4/formal-proof-deepseek-prover-v2",
        grader="lean4-proof",
        metric="lean4-proof",
        items={"test": items},
        licence="Apache-2.0",
        homepage="https://github.com/Goedel-LM/Goedel-Prover-V2",
        citation="arXiv:2508.03613",
        needs_sandbox=True,
        traps=(*traps, "The file has no goal: `goal` is empty.", "Needs a Lean 4 project with Mathlib."),
    )


BENCHMARKS = (
    _benchmark(
        "minif2f",
        "MiniF2F: school and olympiad theorems in Lean 4",
        "minif2f",
        "47ca505cd60a503a77165e84bbf34c662f9a8c650d09fc33fb4c000179eee8f3",
        minif2f_row,
        244,
        ("Statements corrected by the authors of Goedel-Prover; the test problems only.",),
    ),
    _benchmark(
        "mobench",
        "MathOlympiadBench: olympiad theorems in Lean 4",
        "MOBench",
        "f286b8942a7b9517be103139d2240adaeabbc1e5f195eb2817aacf9109b1bb95",
        mobench_row,
        360,
        ("Some problems come with definitions, in which the answer of the problem is given.",),
    ),
)
