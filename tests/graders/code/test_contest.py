# SPDX-License-Identifier: Apache-2.0
"""Points of subtasks, with the contest's own checkers and grader files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.graders.code.running_any import fenced, graded

from newskills.base.benchmark import Source
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.metrics import make_metric
from newskills.run.planning.plan import in_folder

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
NEAR = (
    "#include <cmath>\n#include <cstdio>\nint main(int, char** v) {\n"
    '  double a = 0, b = 0; std::fscanf(std::fopen(v[2], "r"), "%lf", &a);\n'
    '  std::fscanf(std::fopen(v[3], "r"), "%lf", &b);\n'
    '  std::puts(a == b ? "1" : std::fabs(a - b) <= 1 ? "0.5" : "0");\n}'
)
TESTS = {
    "sum": {
        "small": {"score": 30, "tests": {"1": {"input": "1 2", "output": "3\n"}, "2": {"input": "0 0", "output": "0"}}},
        "large": {"score": 70, "tests": {"3": {"input": "5000000000 1", "output": "5000000001"}}},
    },
    "near": {"all": {"score": 10, "checker": NEAR, "tests": {"1": {"input": "1 2", "output": "3"}}}},
    "called": {
        "all": {
            "score": 5,
            "grader_files": [
                ["add.h", "long long add(long long, long long);"],
                ["grader.cpp", '#include "add.h"\n#include <cstdio>\n'
                 'int main() { long long a, b; std::scanf("%lld %lld", &a, &b); std::printf("%lld", add(a, b)); }'],
            ],
            "tests": {"1": {"input": "1 2", "output": "3"}},
        }
    },
}  # fmt: skip
SUM = (
    "#include <cstdio>\nint main() {{ long long a, b; "
    'std::scanf("%lld %lld", &a, &b); std::printf("%lld", (long long) (({0}) a + ({0}) b + {1})); }}'
)
"""Streams would take five times as long to compile."""


@pytest.fixture
def test_file(tmp_path: Path) -> str:
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(TESTS))
    return str(path)


def answer(name: str, code: str, **more: Any) -> Row:
    return {"id": name, "name": name, "generation": fenced(code, "cpp"), **more}


@pytest.mark.slow
def test_points(test_file: str) -> None:
    rows = [
        answer("sum", SUM.format("long long", 0)),
        answer("sum", SUM.format("unsigned", 0)),
        answer("sum", "int main() {"),
        answer("sum", "#include <cstdlib>\nint main() { abort(); }"),
        answer("near", SUM.format("int", 0)),
        answer("near", SUM.format("int", 1)),
        answer("called", '#include "add.h"\nlong long add(long long a, long long b) { return a + b; }'),
        answer("unknown", "int main() {}"),
    ]
    scores = graded("ioi", rows, test_file=test_file)
    assert [score.outcome for score in scores] == [
        "correct", "wrong", "wrong", "wrong", "correct", "wrong", "correct", "unscored",
    ]  # fmt: skip
    assert [score.fields.get("score") for score in scores] == [100, 30, 0, 0, 10, 5, 5, None]
    assert [score.fields.get("compiled") for score in scores[:4]] == [True, True, False, True]
    for name, wanted in (
        ("ioi", {"total_score": 115}),
        ("icpc", {"solved": 3, "average_number_of_runs": pytest.approx(7 / 3)}),
        (
            "ccc",
            {"average_score": 32.5 + 7.5 + 5, "best_score": 115, "compile_success_rate": pytest.approx(600 / 7)},
        ),
    ):
        metric = make_metric(name)
        for row, score in zip(rows[:7], scores, strict=False):
            metric.update([{**row, **score.fields, "outcome": score.outcome}])
        found = metric.metrics()["pass@1"]
        assert {key: found[key] for key in wanted} == wanted, name


def test_without_tests_nothing_is_judged(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("[]")
    for place in ("absent.json", "broken.json"):
        (score,) = graded("ccc", [answer("sum", "int main() {}")], test_file=str(tmp_path / place))
        assert (score.outcome, score.cause) == ("unscored", "data")
        assert place in score.why


IOI_ROWS = Path(__file__).parents[2] / "benchmarks/raw/ioi.jsonl"


@pytest.mark.nightly
@pytest.mark.slow
def test_tests_of_the_olympiad_come_with_its_problems(tmp_path: Path) -> None:
    """From rows as they are published to points; tests that two subtasks share run once."""
    place = tmp_path / "rows.jsonl"
    place.write_bytes(IOI_ROWS.read_bytes())
    benchmark = msgspec.structs.replace(get_benchmark("ioi"), sources=(Source(path=str(place)),))
    (done,) = prepare(benchmark, data_dir=tmp_path / "data").splits
    rows = list(read_rows(done.path))
    assert [row["subtask"] for row in rows] == ["01-small", "02-all"]
    assert done.provenance.dropped == {"they are samples, worth no points": 1}
    answers = ("return a + b;", "return (int) a + (int) b;", "return 1;")
    head = '#include "sum.h"\nlong long add(long long a, long long b)'
    asked = [{**rows[0], "generation": fenced(f"{head} {{ {body} }}", "cpp")} for body in answers]
    config = in_folder(benchmark.grader_config, done.path.parent)
    scores = graded("ioi", asked, **config)
    assert [(score.outcome, score.fields["score"]) for score in scores] == [
        ("correct", 100),
        ("wrong", 30),
        ("wrong", 0),
    ]
    absent, manager = "Other", "Talk"
    talk = {"subtasks": {"all": {"grader_files": [["manager.cpp", ""]], "test_names": []}}}
    (done.path.parent / "assets/test/Talk.json").write_text(json.dumps(talk))
    scores = graded("ioi", [{**asked[0], "name": name} for name in (absent, manager)], **config)
    assert [score.outcome for score in scores] == ["unscored"] * 2
    assert "Other.json" in scores[0].why
    assert "manager.cpp" in scores[1].why
