# SPDX-License-Identifier: Apache-2.0
"""FollowBench (Jiang et al. 2024, arXiv:2310.20410): constraints that are added one by one, level by level."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from newskills.base.benchmark import Benchmark, Drop, Judge, Source
from newskills.base.records import Row
from newskills.graders.instructions.followbench import rule_of


def add_instruction_paths(rows: Iterable[Row]) -> Iterable[Row]:
    """Add to each instruction those that led to it, since what its constraints are can only be seen from them."""
    paths: dict[tuple[str, str], dict[int, str]] = {}
    all_rows = list(rows)
    for raw in all_rows:
        paths.setdefault((raw["_file"], str(raw["example_id"])), {})[int(raw["level"])] = raw["instruction"]
    for raw in all_rows:
        path = paths[raw["_file"], str(raw["example_id"])]
        yield {**raw, "path": [path[level] for level in sorted(path) if level <= int(raw["level"])]}


def row(raw: Row, index: int) -> Row | Drop:
    kind, level = PurePosixPath(raw["_file"]).name.partition("_")[0], int(raw["level"])
    if level == 0:
        return Drop("level 0 has no constraint to judge")
    steps = [f"Level {number}: {text}" for number, text in enumerate(raw["path"], level + 1 - len(raw["path"]))]
    target = raw.get("answer") or raw["target"]
    return {
        "id": f"{kind}-{raw['example_id']}-{level}",
        "question": raw["instruction"],
        **({"expected_answer": target} if target else {}),
        "instruction_path": "\n\n".join(steps),
        "constraint_type": kind,
        "example": raw["example_id"],
        "rule": rule_of(kind, int(raw["example_id"]), raw["source"]),
        "level": level,
        "source": raw["source"],
        "subset_for_metrics": f"level-{level}",
    }


BENCHMARK = Benchmark(
    name="followbench",
    category="instruction-following",
    title="FollowBench: one to five constraints on one instruction",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/YJiangcm/FollowBench/master/data/{content,situation,style,format,example,mixed}_constraints.json",
            revision="6278f4c1377b4eafab737267b8b21acd52ea0e52",
            format="json",
        ),
    ),
    join=add_instruction_paths,
    row=row,
    grader="",
    judge=Judge(prompt="judge/followbench", kind="ruled", grader="followbench"),
    metric="followbench",
    items={"test": 820},
    licence="Apache-2.0",
    homepage="https://github.com/YJiangcm/FollowBench",
    citation="arXiv:2310.20410",
    version="2",
    traps=(
        "Of the 944 instructions of the source, the 124 of level 0 have no constraint yet, and are left out.",
        "`hsr` and `ssr` are the authors' hard and soft satisfaction rate, `csl` their consistent satisfaction levels; "
        "the means over levels and kinds are ours, as the authors print a table for each kind.",
        "The authors' rules decide on the kind `example`, and on 14 sources or instructions of the others; there the "
        "judge is not asked.",
        "The judge's prompt is in our words, as the authors' text is part of their code; it asks for the same list of "
        "YES and NO.",
    ),
)
