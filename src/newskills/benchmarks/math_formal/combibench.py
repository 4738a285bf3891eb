# SPDX-License-Identifier: Apache-2.0
"""A hundred combinatorial problems in Lean 4 (Liu et al. 2025, arXiv:2505.03171)."""

import csv
import io
from collections.abc import Iterable, Iterator

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.lean import lean_problem, with_answers


def join_metadata(rows: Iterable[Row]) -> Iterator[Row]:
    """Join Lean files with their lines in `metadata.csv`."""
    lean, metadata = {}, {}
    for raw in rows:
        name = raw["_file"].rpartition("/")[2]
        if name == "metadata.csv":
            metadata = {entry["theorem_name"]: entry for entry in csv.DictReader(io.StringIO(raw["text"]))}
        elif "/with_solution/" not in raw["_file"]:
            lean[name.removesuffix(".lean")] = raw["text"]
    for name in sorted(lean):
        yield {**metadata.get(name, {}), "theorem_name": name, "lean": lean[name]}


def row(raw: Row, index: int) -> Row:
    """Return the row of the first theorem without a proof: one file holds another problem's behind its own, and one a
    second part, in whose statement the first is used."""
    name, answer = raw["theorem_name"], raw.get("answer", "").strip()
    text, marker, _ = with_answers(raw["lean"], _answers_by_name(name, answer)).partition("sorry")
    problem = lean_problem(text + marker)
    return {
        "id": name,
        "name": name,
        "split": "test",
        "header": problem.header,
        "informal_prefix": problem.prefix,
        "formal_statement": problem.statement,
        "problem": raw.get("natural_language") or problem.words,
        **({"expected_answer": answer} if answer else {}),
        "subset_for_metrics": raw.get("tag") or name.partition("_")[0],
    }


def _answers_by_name(name: str, answer: str) -> dict[str, str]:
    """Return name → answer; three questions of one problem have their answers in a list."""
    if not answer:
        return {}
    parts = answer.strip("[]").split(",") if answer.startswith("[") else []
    several = {f"{name}_{number}_solution": part.strip() for number, part in enumerate(parts, 1)}
    return {f"{name}_solution": f"({answer})", f"{name}_2_solution": f"({answer})", **several}


BENCHMARK = Benchmark(
    name="combibench",
    category="math-formal",
    title="CombiBench: combinatorics in Lean 4",
    sources=(
        Source(
            github="MoonshotAI/CombiBench",
            ref="master",
            revision="84063de0347b3c3abfd4bf724b040dfb2f06dcdb",
            members="lean/CombiBench/*.{lean,csv}",
            format="text",
            sha256="776cbb470cd9b93bccd4e0b61edddab5652dee89263592d0d1955febc83a15b7",
        ),
    ),
    join=join_metadata,
    row=row,
    prompt="lean4/formal-proof",
    grader="lean4-proof",
    metric="lean4-proof",
    items={"test": 100},
    licence="MIT",
    homepage="https://github.com/MoonshotAI/CombiBench",
    citation="arXiv:2505.03171",
    needs_sandbox=True,
    traps=(
        "Where a problem asks for a value, it is filled in, and only the proof is asked for.",
        "Of imo_2019_p5 only the first part is asked.",
        "Needs a Lean 4 project with Mathlib.",
    ),
)
