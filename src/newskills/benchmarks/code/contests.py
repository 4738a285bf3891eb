# SPDX-License-Identifier: Apache-2.0
"""Contests with subtasks and points: IOI, and those whose problems and tests the user brings, ICPC and CCC."""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from newskills.base.benchmark import Asset, Benchmark, Drop, Source
from newskills.base.records import Row

_POINTS = (
    "A subtask is worth its points times its worst test; of several answers the best counts for each subtask."
)
_TESTS = (
    "Tests come from a file of yours, ++eval_config.test_file=FILE: problem name → subtask → {score, tests: "
    "{name: {input, output}}, grader_files, checker, time_limit}. Without it answers are unscored."
)


def join_tests(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield subtasks, each with all tests of its problem. These are kept packed until then: they have some
    gigabytes."""
    subtasks: dict[str, list[Row]] = defaultdict(list)
    tests: dict[str, dict[str, bytes]] = defaultdict(dict)
    for row in raw:
        if "test_name" in row:
            case = msgspec.json.encode({"input": row["test_input"], "output": row["test_output"]})
            tests[row["problem_id"]][row["test_name"]] = zlib.compress(case, 1)
        else:
            subtasks[row["id"]].append(row)
    for problem, parts in subtasks.items():
        cases_by_name = {name: msgspec.Raw(zlib.decompress(case)) for name, case in tests.pop(problem, {}).items()}
        described = {part["subtask"]: _subtask_settings(part) for part in parts if part["score"]}
        file = msgspec.json.encode({"subtasks": described, "tests": cases_by_name})
        yield from ({**part, "file": file} for part in parts)


def _subtask_settings(raw: Row) -> Row:
    """Return a subtask, in which a checker is told apart from what is compiled with the answer; all lie in one
    folder."""
    files = {path.rpartition("/")[2]: text for path, text in raw["grader_files"] if text}
    checker = next((files[name] for name in files if name.startswith("checker.c")), "")
    return {
        "score": raw["score"],
        "test_names": raw["test_names"],
        "grader_files": [[name, text] for name, text in files.items() if not name.startswith("checker.c")],
        "checker": checker,
        "checker_files": ["input", "answer", "output"],
        "time_limit": raw.get("time_limit") or 0,
    }


def ioi_row(raw: Row, index: int) -> Row | Drop:
    if not raw["score"]:
        return Drop("they are samples, worth no points")
    return {
        "id": f"{raw['year']}/{raw['id']}/{raw['subtask']}",
        "name": raw["name"],
        "ioi_id": raw["id"],
        "subtask": raw["subtask"],
        "question": raw["problem"],
        "subtask_score": raw["score"],
        "tests": Asset(f"{raw['name']}.json", raw["file"]),
    }


def _benchmark(name: str, title: str, homepage: str, *traps: str, **more: Any) -> Benchmark:
    return Benchmark(
        name=name,
        category="code",
        title=title,
        prompt="generic/default",
        grader=name,
        metric=name,
        licence="unstated (problems of the contest's authors)",
        homepage=homepage,
        needs_sandbox=True,
        traps=(*traps, _POINTS),
        **more,
    )


def _own_problems_note(name: str) -> str:
    return f"The problems are yours, too: lay them into <data dir>/{name}/test.jsonl, with id, name and question."


BENCHMARKS = (
    _benchmark(
        "ioi",
        "IOI: olympiad problems in C++, by subtasks",
        "https://huggingface.co/datasets/open-r1/ioi",
        "The tests (IOI 2024) are fetched with the problems: some gigabytes, below assets/ beside them.",
        "Problems that are a conversation with a manager program are unscored: it is not run.",
        "The rows of a problem differ in the subtask only; an answer to one is tested on all.",
        sources=(Source(hf="{open-r1/ioi,open-r1/ioi-test-cases:2024/train}", hf_split="test", format="parquet"),),
        join=join_tests,
        row=ioi_row,
        grader_config={"test_file": "{folder}/assets/test"},
        unverified=True,
    ),
    _benchmark(
        "icpc", "ICPC: team contest problems in C++", "https://icpc.global", _own_problems_note("icpc"), _TESTS
    ),
    _benchmark(
        "ccc",
        "CCC: Canadian contest problems in C++, by subtasks",
        "https://cemc.uwaterloo.ca/resources/past-contests",
        _own_problems_note("ccc"),
        _TESTS,
    ),
)
