# SPDX-License-Identifier: Apache-2.0
"""C++ functions called with JSON values, and problems in archives with checkers, in a real sandbox."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.graders.code.running_any import fenced, graded

from newskills.base.records import Row
from newskills.benchmarks import contest_tests
from newskills.graders.code.cpp_calls import calling_program

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
STARTER = "class Solution {\npublic:\n    %s {\n        \n    }\n};"
SUMS = "vector<long long> sums(vector<vector<int>>& rows, const string& name, bool twice)"
SUMS_CALLS = [
    ('[[1, 2], [3000000000]]\n"a\\u00e9\\n"\ntrue'.replace("3000000000", "3"), "[6, 6, 3]"),
    ('[]\n""\nfalse', "[0]"),
]
SUMS_CODE = """#include <iostream>
class Solution {
    long long factor(bool twice) { return twice ? 2 : 1; }
public:
    vector<long long> sums(vector<vector<int>>& rows, const string& name, bool twice) {
        cout << "noise";
        vector<long long> found;
        for (auto& row : rows) found.push_back(factor(twice) * accumulate(row.begin(), row.end(), 0LL));
        found.push_back(%s);
        return found;
    }
    int sums(int other) { return other; }
};
int main() { return 1; }"""
CASES: dict[str, tuple[str, str, list[tuple[str, str]], str, str]] = {
    "right": (SUMS, "sums", SUMS_CALLS, SUMS_CODE % "name.size() ? name.size() - 1 : 0", "correct"),
    "wrong": (SUMS, "sums", SUMS_CALLS, SUMS_CODE % "7", "wrong"),
    "not built": (SUMS, "sums", SUMS_CALLS, SUMS_CODE % "name", "wrong"),
    "no such function": (SUMS, "sums", SUMS_CALLS, "class Solution { public: int sum() { return 1; } };", "wrong"),
    "in place": (
        "void turn(vector<char>& s)",
        "turn",
        [('["a", "b"]', '["b", "a"]')],
        "class Solution { public: void turn(vector<char>& s) { reverse(s.begin(), s.end()); } };",
        "correct",
    ),
    "fractions": (
        "double half(double x)",
        "half",
        [("0.6", "0.3"), ("5", "2.5"), ("6", "3.0")],
        "class Solution { public: double half(double x) { return x / 2; } };",
        "correct",
    ),
    "texts": (
        "vector<string> parts(string s)",
        "parts",
        [('"a\\"b"', '["a\\"b", "2"]')],
        'class Solution { public: vector<string> parts(string s) { return {s, "2"}; } };',
        "correct",
    ),
    "exception": (
        "int f(int x)",
        "f",
        [("1", "1")],
        "class Solution { public: int f(int x) { throw 1; } };",
        "wrong",
    ),
    "a type without values": (
        "int f(ListNode* head)",
        "f",
        [("[1]", "1")],
        "class Solution { public: int f(ListNode* head) { return 1; } };",
        "unscored",
    ),
}


@pytest.mark.slow
def test_functions_are_called() -> None:
    rows: list[Row] = [
        {
            "generation": fenced(code, "cpp"),
            "starter_code": STARTER % head,
            "tests": {"inputs": [i for i, _ in calls], "outputs": [o for _, o in calls], "function": name},
        }
        for head, name, calls, code, _ in CASES.values()
    ]
    free = {
        **rows[5],
        "starter_code": "double half(double x) {",
        "generation": fenced("double half(double x) { return x / 2; }", "cpp"),
    }
    *scores, alone = graded("livecodebench", [*rows, free], language="cpp")
    assert {name: (score.outcome, score.why) for name, score in zip(CASES, scores, strict=True)} == {
        name: (outcome, score.why) for (name, (*_, outcome)), score in zip(CASES.items(), scores, strict=True)
    }
    assert "ListNode" in scores[-1].why
    assert scores[2].why.startswith("not built")
    assert alone.outcome == "correct", alone.why


def test_the_function_is_told_by_the_starter_code() -> None:
    case = {"input": "1", "output": "1", "testtype": "functional"}
    raw = {
        "public_test_cases": f'[{{"input": "1", "output": "1", "testtype": "{case["testtype"]}"}}]',
        "private_test_cases": "[]",
        "starter_code": "/* struct Node { Node(int x); } */\n" + STARTER % "int f(int x)",
    }
    assert contest_tests.pack_tests(raw, {}) == contest_tests.pack_tests(raw, {"func_name": "f"})
    with pytest.raises(ValueError, match="starter_code"):
        contest_tests.pack_tests({**raw, "starter_code": ""}, {})
    with pytest.raises(ValueError, match="no head of g"):
        calling_program("", STARTER % "int f(int x)", "g")


HEADER = (
    "#include <cstdio>\n#include <cstdlib>\n"
    'inline double number(char* path) { double x = 0; std::fscanf(std::fopen(path, "r"), "%lf", &x); return x; }\n'
)
CHECKER = (
    '#include "testlib.h"\nint main(int, char** v) {\n'
    "  double in = number(v[1]), told = number(v[2]), want = number(v[3]);\n"
    "  if (in == 13) return 3;\n  return told == want || told == -want ? 0 : 1; }"
)
ROOT = (
    '#include <cmath>\n#include <cstdio>\nint main() {{ double x; std::scanf("%lf", &x); std::printf("%g", {}); }}'
)


def archived(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"problem/{name}", text)
    return made.getvalue()


def root(*values: int, **more: str) -> dict[str, str]:
    tests = {f"testdata/{n}.in": f"{v * v}\r\n" for n, v in enumerate(values, 1)}
    answers = {f"testdata/{n}.ans": f"{v}\n" for n, v in enumerate(values, 1)}
    return {
        "config.yaml": "type: default\ntime: 1500ms\nmemory: 256m\nchecker: chk.cc\n",
        **tests,
        **answers,
        **more,
    }


@pytest.mark.nightly
@pytest.mark.slow
def test_archives_of_problems(tmp_path: Path) -> None:
    (tmp_path / "lib.h").write_text(HEADER)
    archives: dict[str, dict[str, str]] = {
        "2084A": root(1, 2, 3, **{"chk.cc": CHECKER}),
        "2084B": root(1, 2, 3),
        "2084C": {**root(1), "config.yaml": "type: interactive\n"},
        "2084D": {"config.yaml": "time: 1s\n"},
        "2084E": {**root(0), "testdata/1.in": "13", "chk.cc": CHECKER},
        "2084F": {
            **root(1, 2),
            "config.yaml": "subtasks:\n- time: 1s\n  cases:\n  - {input: 2.in, output: 2.ans}\n",
        },
    }
    for name, files in archives.items():
        (tmp_path / f"{name}.zip").write_bytes(archived(files))
    (tmp_path / "2084G").mkdir()
    for name, text in root(2).items():
        (tmp_path / "2084G" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "2084G" / name).write_text(text)
    asked: list[tuple[str, str, str]] = [
        ("2084A", "sqrt(x)", "correct"),
        ("2084A", "-sqrt(x)", "correct"),
        ("2084A", "x", "wrong"),
        ("2084B", "sqrt(x)", "correct"),
        ("2084B", "-sqrt(x)", "wrong"),
        ("2084C", "sqrt(x)", "unscored"),
        ("2084D", "sqrt(x)", "unscored"),
        ("2084E", "sqrt(x)", "unscored"),
        ("2084F", "x / 2", "correct"),
        ("2084G", "sqrt(x)", "correct"),
        ("2084X", "sqrt(x)", "unscored"),
    ]
    rows: list[Row] = [{"id": name, "generation": fenced(ROOT.format(text), "cpp")} for name, text, _ in asked]
    config: dict[str, Any] = {"test_dir": str(tmp_path), "testlib": str(tmp_path / "lib.h")}
    scores = graded("livecodebench_pro", rows, **config)
    assert [(name, text, score.outcome) for (name, text, _), score in zip(asked, scores, strict=True)] == asked
    assert scores[2].why == "test 2 of 3: another output"
    assert scores[4].fields == {"completion": ROOT.format("-sqrt(x)"), "is_correct": False, "graded_list": [False]}
    assert "interactive" in scores[5].why
    assert "the checker failed" in scores[7].why
    (without,) = graded("livecodebench_pro", rows[:1], test_dir=str(tmp_path), testlib=str(tmp_path / "absent.h"))
    assert (without.outcome, "++eval_config.testlib" in without.why) == ("unscored", True)
