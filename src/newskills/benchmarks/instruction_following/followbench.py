# SPDX-License-Identifier: Apache-2.0
"""FollowBench (Jiang et al. 2024, arXiv:2310.20410): constraints that are added one by one, level by level."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from newskills.base.benchmark import Benchmark, Drop, Judge, Source
from newskills.base.records import Row


def join(rows: Iterable[Row]) -> Iterable[Row]:
    """Each instruction gets those that led to it: what its constraints are can only be seen from them."""
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
        "constraint_type": raw["category"],
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
    join=join,
    row=row,
    grader="",
    judge=Judge(prompt="judge/followbench"),
    items={"test": 820},
    licence="Apache-2.0",
    homepage="https://github.com/YJiangcm/FollowBench",
    citation="arXiv:2310.20410",
    traps=(
        "Of the 944 instructions of the source, the 124 of level 0 have no constraint yet, and are left out.",
        "The score is the hard satisfaction rate (all constraints of a level); the soft rate is not computed.",
        "The judge decides on the kind `example`, too, which the authors check with rules.",
    ),
)
