# SPDX-License-Identifier: Apache-2.0
"""Grids whose rule is to be found from a few examples: ARC-AGI-1 (Chollet 2019, arXiv:1911.01547) and ARC-AGI-2."""

from collections.abc import Sequence

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

Grid = Sequence[Sequence[int]]


def format_grid(grid: Grid) -> str:
    return "\n".join(" ".join(map(str, cells)) for cells in grid)


def row(raw: Row, index: int) -> Row:
    parts = [
        f"Example {number}\nInput:\n{format_grid(pair['input'])}\nOutput:\n{format_grid(pair['output'])}"
        for number, pair in enumerate(raw["train"], 1)
    ]
    numbers = range(1, len(raw["test"]) + 1)
    parts += [f"Input {number} to solve:\n{format_grid(raw['test'][number - 1]['input'])}" for number in numbers]
    return {
        "id": raw["_file"].rpartition("/")[2].removesuffix(".json"),
        "problem": "\n\n".join(parts),
        "expected_answer": [pair["output"] for pair in raw["test"]],
        "train": raw["train"],
        "test_inputs": [pair["input"] for pair in raw["test"]],
    }


def _benchmark(name: str, github: str, ref: str, revision: str, sha256: str, items: int, grids: int) -> Benchmark:
    return Benchmark(
        name=name,
        category="reasoning",
        title=f"ARC-{name[4:].upper()}, public evaluation: grids by an unknown rule",
        sources=(
            Source(
                split="evaluation",
                github=github,
                ref=ref,
                revision=revision,
                members="data/evaluation/*.json",
                format="object",
                sha256=sha256,
            ),
        ),
        row=row,
        prompt="generic/arc-grid",
        grader="grid_match",
        metric="arc",
        split="evaluation",
        items={"evaluation": items},
        licence="Apache-2.0",
        homepage="https://arcprize.org",
        citation="arXiv:1911.01547" if name == "arc-agi-1" else "arXiv:2505.11831",
        traps=(
            f"{items} tasks with {grids} grids, of which a reply has to give all of its task; `accuracy` counts tasks.",
            f"The leaderboard allows two attempts: `arc_score` of pass@2, of --benchmarks={name}:2.",
        ),
    )


BENCHMARKS = (
    _benchmark(
        "arc-agi-1",
        "fchollet/ARC-AGI",
        "master",
        "399030444e0ab0cc8b4e199870fb20b863846f34",
        "3b22f7e488fbcc90b76dcfc535f33984d39959fedf55c213b15d59da3e9d4223",
        400,
        419,
    ),
    _benchmark(
        "arc-agi-2",
        "arcprize/ARC-AGI-2",
        "main",
        "f3283f727488ad98fe575ea6a5ac981e4a188e49",
        "1a5a74e4dcc2a1a1d0c4af3288428abcd3832cfed92503a4c782b89c56207610",
        120,
        167,
    ),
)
