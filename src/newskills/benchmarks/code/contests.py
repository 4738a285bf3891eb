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


def given(raw: Row, index: int) -> Row:
    return {**raw, "id": str(raw["id"]), "name": raw["name"], "question": raw["question"]}


def _benchmark(name: str, title: str, source: Source, homepage: str, *traps: str) -> Benchmark:
    return Benchmark(
        name=name,
        category="code",
        title=title,
        sources=(source,),
        row=ioi if name == "ioi" else given,
        prompt="generic/default",
        grader=name,
        metric=name,
        homepage=homepage,
        needs_sandbox=True,
        unverified=True,
        traps=(*traps, *_TRAPS),
    )


BENCHMARKS = (
    _benchmark(
        "ioi",
        "IOI: olympiad problems in C++, by subtasks",
        Source(hf="open-r1/ioi", format="parquet"),
        "https://huggingface.co/datasets/open-r1/ioi",
        "Subtask 0 is the sample of the statement and brings no points.",
    ),
    _benchmark(
        "icpc",
        "ICPC: team contest problems in C++",
        Source(path="icpc.jsonl", note="Lay your problems there: id, name, question."),
        "https://icpc.global",
    ),
    _benchmark(
        "ccc",
        "CCC: Canadian contest problems in C++, by subtasks",
        Source(path="ccc.jsonl", note="Lay your problems there: id, name, question, subtask."),
        "https://cemc.uwaterloo.ca/resources/past-contests",
    ),
)
