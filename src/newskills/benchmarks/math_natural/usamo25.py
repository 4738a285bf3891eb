# SPDX-License-Identifier: Apache-2.0
"""Six proofs of the USA Mathematical Olympiad 2025, marked as in MathArena (Petrov et al. 2025, arXiv:2503.21934)."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import msgspec

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

_FOLDER = "data/usamo/usamo_2025"


def join_marking_schemes(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield each marking scheme with its problem and solution: each of these has a file, and one file has all
    schemes."""
    files = {str(PurePosixPath(row["_file"]).relative_to(_FOLDER)): row["text"] for row in raw}
    for marking in msgspec.json.decode(files["grading_scheme.json"]):
        name = f"{marking['id']}.tex"
        yield {**marking, "problem": files[f"problems/{name}"], "solution": files[f"solutions/{name}"]}


def row(raw: Row, index: int) -> Row:
    parts = [f"- {part['title']} ({part['points']} of {raw['points']}): {part['desc']}" for part in raw["scheme"]]
    return {
        "id": f"usamo25-{raw['id']}",
        "problem": raw["problem"].strip(),
        "reference_solution": raw["solution"].strip(),
        "rubric": "\n".join(parts),
    }


BENCHMARK = Benchmark(
    name="usamo25",
    category="math-natural",
    title="USAMO 2025: proofs",
    aliases=("usamo2025", "usamo_2025"),
    sources=(
        Source(
            github="eth-sri/matharena",
            ref="main",
            revision="81f103e38b1df076afa65ee0a3ffbe148d42e6d2",
            members=f"{_FOLDER}/{{grading_scheme.json,problems/*.tex,solutions/*.tex}}",
            format="text",
            sha256="b7690e8cfd0e1dd6e8ba2a59ad011dc98c0e8bee93c81eecc0c90c57da0c77dc",
        ),
    ),
    join=join_marking_schemes,
    row=row,
    prompt="generic/proof",
    grader="",
    judge=Judge(prompt="judge/imo_proofbench"),
    items={"test": 6},
    licence="MIT (repository); contest problems",
    homepage="https://matharena.ai",
    citation="arXiv:2503.21934",
    traps=(
        "Only 6 problems: look at the interval.",
        "A proof counts as right from 6 of 7 points on; the judge's text has the points.",
    ),
)
