# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of code whose data no test can have: solutions of invented rows are right, and nothing else is."""

from __future__ import annotations

import base64
import pickle
import zlib
from pathlib import Path

import pytest
from tests.benchmarks.test_raw_fixtures import _prepared
from tests.graders.code.running_any import fenced, graded

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.downloads.pickled_text import hidden_text, text_in_pickle

TWICE = "print(2 * int(input()))"
ADD = (
    "class Solution:\n    def add(self, numbers: List[int], more: int) -> int:\n        return sum(numbers) + more"
)
CPP = '#include <cstdio>\nint main() { int x; std::scanf("%d", &x); std::printf("%d", 2 * x); }'
CPP_TWICE = "class Solution {\npublic:\n    int twice(int x) { return 2 * x; }\n};"
SOLUTIONS = {
    "livecodebench.jsonl": {"x1_a": TWICE, "x2_a": ADD},
    "livecodebench-cpp.jsonl": {"x1_a": CPP, "x2_a": CPP_TWICE},
    "livebench-coding.jsonl": {"q1": TWICE, "q2": ADD},
}
"""For rows that bring none."""


@pytest.mark.parametrize(
    ("file", "unscored"),
    [
        ("human-eval-plus.jsonl", 0),
        ("bigcodebench.jsonl", 0),
        ("livecodebench.jsonl", 0),
        ("livecodebench-cpp.jsonl", 0),
        ("livecodebench-pro.jsonl", 2),
        ("livebench-coding.jsonl", 0),
        ("classeval.json", 0),
        ("mbpp.jsonl", 0),
        ("naturalcodebench.jsonl", 1),
        ("ds-1000.jsonl", 0),
    ],
)
def test_solutions_are_right_and_others_wrong(file: str, unscored: int, tmp_path: Path) -> None:
    benchmark, rows = _prepared(file, tmp_path)
    rows = list({row["id"]: row for row in rows}.values())
    known = SOLUTIONS.get(file, {})
    mark = "cpp" if benchmark.grader_config.get("language") == "cpp" else ""
    codes = [known.get(row["id"]) or _head(row) + row.get("canonical_solution", CPP) for row in rows]
    right = [{**row, "generation": fenced(code, mark or row.get("language", "python"))}
             for row, code in zip(rows, codes, strict=True)]  # fmt: skip
    wrong = [{**row, "generation": fenced("0;", mark or row.get("language", "python"))} for row in rows]
    scores = graded(benchmark.grader, [*right, *wrong], **benchmark.grader_config)
    outcomes = [score.outcome for score in scores]
    assert outcomes[: len(rows)].count("correct") == len(rows) - unscored, scores
    assert outcomes[len(rows) :].count("wrong") == len(rows) - unscored, scores
    assert outcomes.count("unscored") == 2 * unscored


def _head(row: Row) -> str:
    return str(row.get("code_prompt") or row.get("prompt", ""))


def test_windows_of_dates(tmp_path: Path) -> None:
    _, rows = _prepared("livecodebench.jsonl", tmp_path)
    assert {row["id"] for row in rows} == {"x1_a", "x2_a"}, "one row is older than any window"


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("run by the pickle",)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_texts_are_read_without_unpickling(protocol: int, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", "x", "ä" * 300, "\n" * 70_000):
        assert text_in_pickle(pickle.dumps(text, protocol)) == text
    for value in (Evil(), ["x"], 1, b"x", ("x", "y")):
        with pytest.raises(DataError):
            text_in_pickle(pickle.dumps(value, protocol))
    assert capsys.readouterr().out == ""


def test_what_is_no_pickle_is_refused() -> None:
    for data in (
        b"",
        b"\x80",
        b"\x80\x04",
        b"\x80\x04X\xff\xff\xff\xffab.",
        pickle.dumps("x")[:-1],
        pickle.dumps("x") + b".",
    ):
        with pytest.raises(DataError):
            text_in_pickle(data)
    for text in (
        "",
        "!!!",
        base64.b64encode(b"x").decode(),
        base64.b64encode(zlib.compress(b"x" * 99)[:-5]).decode(),
    ):
        with pytest.raises(DataError):
            hidden_text(text)


def test_readings_of_tasks_that_evalplus_takes_beside_its_reference(tmp_path: Path) -> None:
    """Its `_special_oracle`: no divisor sum of a prime, digits compared one by one."""
    benchmark, rows = _prepared("mbpp.jsonl", tmp_path)
    codes = {
        "sum_div": "def sum_div(n):\n    return sum(d for d in range(2, n) if n % d == 0) + (n in (8, 12))",
        "digit_distance_nums": "def digit_distance_nums(a, b):\n"
        "    return sum(abs(int(x) - int(y)) for x, y in zip(str(a).zfill(9), str(b).zfill(9)))",
        "similar_elements": "def similar_elements(a, b):\n    return sorted(set(a) & set(b))",
    }
    answers = [{**row, "generation": fenced(codes[row["entry_point"]], "python")} for row in rows]
    scores = graded(benchmark.grader, answers)
    assert {row["entry_point"]: score.outcome for row, score in zip(rows, scores, strict=True)} == dict.fromkeys(
        codes, "correct"
    )
