# SPDX-License-Identifier: Apache-2.0
"""Lean 4 programs that are to be proved right (Ye et al. 2025, arXiv:2505.23135)."""

from collections.abc import Iterable, Iterator

import msgspec

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.lean import to_prove

_MARK = "-- !benchmark"
_PROOF = f"{_MARK} @start proof\n"


def joined(rows: Iterable[Row]) -> Iterator[Row]:
    """Files of a task's folder as one row."""
    tasks: dict[str, Row] = {}
    for raw in rows:
        folder, _, file = raw["_file"].rpartition("/")
        tasks.setdefault(folder.rpartition("/")[2], {})[file] = raw["text"]
    for name in sorted(tasks):
        yield {"id": name, **tasks[name]}


def row(raw: Row, index: int) -> Row:
    """The program, its conditions and the theorem; the proof that some tasks bring is left out."""
    text, found, _ = raw["task.lean"].replace("\r\n", "\n").rpartition(_PROOF)
    if not found:
        raise ValueError("task.lean has no place for a proof")
    lines = [line for line in text.splitlines() if not line.strip().startswith(_MARK)]
    imports = [line for line in lines if line.startswith("import ") and line != "import Mathlib"]
    rest = "\n".join(line for line in lines if not line.startswith("import "))
    return {
        "id": raw["id"],
        "name": msgspec.json.decode(raw["task.json"])["signature"]["name"],
        "split": "test",
        "header": "\n".join(["import Mathlib", *dict.fromkeys(imports)]) + "\n\n",
        "informal_prefix": "",
        "formal_statement": to_prove(rest.strip()),
        "problem": raw["description.txt"].replace("\r\n", "\n").strip(),
        "subset_for_metrics": raw["id"].split("_")[1],
    }


BENCHMARK = Benchmark(
    name="verina",
    category="math-formal",
    title="Verina: Lean 4 programs to be proved right",
    sources=(
        Source(
            github="sunblaze-ucb/verina",
            ref="main",
            revision="d12090a87619cbfcc43b83a8cb08f6deda1ecea8",
            members="datasets/verina/*/{task.lean,task.json,description.txt}",
            format="text",
            sha256="0799013ffdeb00aeacba5ea6b193035fe40f1b9a40fab26c0a65413819e20c17",
        ),
    ),
    join=joined,
    row=row,
    prompt="lean4/formal-proof",
    grader="lean4-proof",
    metric="lean4-proof",
    items={"test": 189},
    licence="Apache-2.0",
    homepage="https://github.com/sunblaze-ucb/verina",
    citation="arXiv:2505.23135",
    needs_sandbox=True,
    traps=(
        "Its proof task only: program and conditions are given. Writing programs and conditions is not asked.",
        "Needs a Lean 4 project with Mathlib.",
    ),
)
