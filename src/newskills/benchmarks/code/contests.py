# SPDX-License-Identifier: Apache-2.0
"""Contests with subtasks and points, whose problems and tests the user brings: IOI, ICPC, CCC."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_TRAPS = (
    "Tests come from a file of yours, ++eval_config.test_file=FILE: problem name → subtask → {score, tests: "
    "{name: {input, output}}, grader_files, checker, time_limit}. Without it answers are unscored.",
    "A subtask is worth its points times its worst test; of several answers the best counts for each subtask.",
)


def ioi(raw: Row, index: int) -> Row:
    return {
        "id": f"{raw['year']}/{raw['id']}/{raw['subtask']}",
        "name": raw["name"],
        "ioi_id": raw["id"],
        "subtask": raw["subtask"],
        "question": raw["problem"],
        "subtask_score": raw["score"],
    }


def _benchmark(name: str, title: str, homepage: str, *traps: str, sources: tuple[Source, ...] = ()) -> Benchmark:
    own = f"The problems are yours, too: lay them into <data dir>/{name}/test.jsonl, with id, name and question."
    return Benchmark(
        name=name,
        category="code",
        title=title,
        sources=sources,
        row=ioi if sources else None,
        prompt="generic/default",
        grader=name,
        metric=name,
        licence="unstated (problems of the contest's authors)",
        homepage=homepage,
        needs_sandbox=True,
        unverified=bool(sources),
        traps=(*traps, *(() if sources else (own,)), *_TRAPS),
    )


BENCHMARKS = (
    _benchmark(
        "ioi",
        "IOI: olympiad problems in C++, by subtasks",
        "https://huggingface.co/datasets/open-r1/ioi",
        sources=(Source(hf="open-r1/ioi", format="parquet"),),
    ),
    _benchmark("icpc", "ICPC: team contest problems in C++", "https://icpc.global"),
    _benchmark(
        "ccc",
        "CCC: Canadian contest problems in C++, by subtasks",
        "https://cemc.uwaterloo.ca/resources/past-contests",
    ),
)
