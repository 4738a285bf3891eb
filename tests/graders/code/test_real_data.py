# SPDX-License-Identifier: Apache-2.0
"""Reference solutions pass their own tests, and what is no solution fails them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tests.graders.code.running import fenced, grade_all
from tests.night import NIGHTLY

from newskills.base.records import Row, Score
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, prepare_many
from newskills.benchmarks.downloads.fetch import FetchOptions

pytestmark = pytest.mark.mirror

SLOW_TASK = "Mbpp/123"
"""The one reference solution that needs about 5 s."""
SHARE = slice(0, None, 9)
"""Of the problems, what CI runs; nightly tests run the others."""
MBPP_SPLITS = ("prompt", "test", "validation", "train")


@pytest.fixture(scope="module")
def prepared(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    options = FetchOptions(mirror=str(mirror), offline=True)
    for result in prepare_many(
        [get_benchmark(n) for n in ("human_eval", "mbpp-original")], data_dir=folder, options=options
    ):
        assert not isinstance(result, Exception), result
        assert [split.notices for split in result.splits if split.notices] == []
    return folder


@cache
def rows(folder: Path, name: str, split: str = "test") -> list[Row]:
    return list(read_rows(load_rows(get_benchmark(name), split, folder)))


def failed(problems: list[Row], scores: list[Score]) -> dict[str, str]:
    return {row["id"]: s.why for row, s in zip(problems, scores, strict=True) if s.outcome != "correct"}


def test_splits_of_mbpp(prepared: Path) -> None:
    parts = [rows(prepared, "mbpp-original", split) for split in MBPP_SPLITS]
    assert [len(part) for part in parts] == [10, 500, 90, 374]
    whole = rows(prepared, "mbpp-original", "full")
    assert [row["id"] for row in whole] == [f"Mbpp/{n}" for n in range(1, 975)]
    assert [row for part in parts for row in part] == whole
    assert (parts[1][0]["task_id"], parts[1][-1]["task_id"]) == (11, 510)


def test_what_tests_use_of_mbpp_answers(prepared: Path) -> None:
    found = {row["task_id"]: row for row in rows(prepared, "mbpp-original", "full")}
    assert found[1]["names"] == ["min_cost"]
    assert found[126]["names"] == ["sum"]
    assert {n for n, row in found.items() if len(row["names"]) > 1} == {367, 601, 927}
    assert found[601]["names"] == ["max_chain_length", "Pair"]
    assert found[596]["test_setup_code"] == "import sys\n"
    assert all(row["entry_point"] in row["question"] for row in found.values())
    assert not any("\r" in row["canonical_solution"] for row in found.values())


def test_human_eval_passes(prepared: Path) -> None:
    problems = rows(prepared, "human-eval")
    assert len(problems) == 164
    problems = problems[SHARE] if not NIGHTLY else problems
    answers = [{**row, "generation": fenced(row["prompt"] + row["canonical_solution"])} for row in problems]
    assert failed(answers, grade_all(answers)) == {}


def test_bodies_of_human_eval_pass(prepared: Path) -> None:
    answers = [{**row, "generation": row["canonical_solution"]} for row in rows(prepared, "human-eval")[::8]]
    assert failed(answers, grade_all(answers)) == {}


def _mbpp(problems: list[Row]) -> dict[str, str]:
    answers = [{**row, "generation": fenced(row["canonical_solution"])} for row in problems]
    return failed(answers, grade_all(answers))


def test_a_share_of_mbpp_passes(prepared: Path) -> None:
    assert _mbpp(rows(prepared, "mbpp-original", "full")[SHARE]).keys() <= {SLOW_TASK}


@pytest.mark.slow
@pytest.mark.nightly
def test_the_rest_of_mbpp_passes(prepared: Path) -> None:
    rest = list(rows(prepared, "mbpp-original", "full"))
    del rest[SHARE]
    found = _mbpp(rest)
    assert found.keys() <= {SLOW_TASK}
    assert all(why.startswith("timeout") for why in found.values())


@pytest.mark.parametrize("body", ["    return None\n", "    pass\n", "    raise SystemExit(0)\n"])
def test_what_is_no_solution_fails(prepared: Path, body: str) -> None:
    problems = rows(prepared, "human-eval")[::6]
    answers = [{**row, "generation": fenced(row["prompt"] + body)} for row in problems]
    assert {score.outcome for score in grade_all(answers)} == {"wrong"}


def test_another_problems_solution_fails(prepared: Path) -> None:
    problems = rows(prepared, "mbpp-original")[:40]
    others = [*problems[1:], problems[0]]
    answers = [
        {
            **row,
            "generation": fenced(other["canonical_solution"].replace(other["entry_point"], row["entry_point"])),
        }
        for row, other in zip(problems, others, strict=True)
    ]
    assert {score.outcome for score in grade_all(answers)} == {"wrong"}
