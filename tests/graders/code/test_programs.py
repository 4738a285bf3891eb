# SPDX-License-Identifier: Apache-2.0
"""Programs that read and print, functions that are called, and what tries to look like them."""

from __future__ import annotations

import shutil

import pytest
from tests.graders.code.running_any import fenced, graded

from newskills.base.records import Row
from newskills.graders.code.infilling import answer_readings
from newskills.graders.code.stdio import Cases, pack_cases, same_text, same_value, unpack_cases

SUMS = {"inputs": ["1 2\n", "5 6\n", "-1 1\n"], "outputs": ["3\n", "11\n", "0"]}
CALLS = {"inputs": ['[1, 2]\n"a"', '[]\n"b"'], "outputs": ['["a", 3]', '["b", 0]'], "function": "total"}
METHOD = "class Solution:\n    def total(self, numbers: List[int], name: str):\n        {}"


def summing(code: str, **more: object) -> Row:
    return {"generation": fenced(code), "tests": SUMS, **more}


def calling(body: str) -> Row:
    return {"generation": fenced(METHOD.format(body)), "tests": CALLS}


PYTHON: dict[str, tuple[Row, str, str]] = {
    "right": (summing("a, b = map(int, input().split())\nprint(a + b)"), "correct", "passed"),
    "under a guard": (
        summing("if __name__ == '__main__':\n    print(sum(map(int, input().split())))"),
        "correct",
        "",
    ),
    "usual imports are there": (
        summing("print(sum(map(int, sys.stdin.read().split())), '  ')"),
        "correct",
        "passed",
    ),
    "packed": (
        summing("print(sum(map(int, input().split())))", tests=pack_cases(Cases(**SUMS))),
        "correct",
        "passed",
    ),
    "future": (
        summing("from __future__ import annotations\nprint(sum(map(int, input().split())))"),
        "correct",
        "",
    ),
    "wrong": (summing("print(3)"), "wrong", "test 2 of 3: another output"),
    "more lines": (summing("print(sum(map(int, input().split())));print()\nprint(1)"), "wrong", "test 1 of 3"),
    "error": (summing("print(1 / 0)"), "wrong", "test 1 of 3: exit code 1: ZeroDivisionError"),
    "right, then an error": (
        summing("print(sum(map(int, input().split())))\n1 / 0"),
        "wrong",
        "test 1 of 3: exit",
    ),
    "syntax": (summing("print("), "wrong", "test 1 of 3: exit code 1: SyntaxError"),
    "prose": ({"generation": "I am sorry.", "tests": SUMS}, "no_answer", "no code (no program)"),
    "nothing": ({"generation": "", "tests": SUMS}, "no_answer", "no code (empty)"),
    "no tests": ({"generation": fenced("print()")}, "unscored", "the record has no tests"),
    "surrogate": (summing("print('\ud800')"), "wrong", "half of a surrogate pair"),
    "kills its parent": (summing("import os\nos.kill(os.getppid(), 9)"), "wrong", "test 1 of 3: crashed"),
    "method": (calling("print('noise'); return name, sum(numbers)"), "correct", "passed"),
    "wrong method": (calling("return [name, 1]"), "wrong", "test 1 of 2: another output"),
    "writes a verdict": (calling("import os; os.write(1, b'[\"a\", 3]'); os._exit(0)"), "wrong", "test 1 of 2"),
    "no value": (calling("return {1, 2}"), "wrong", "test 1 of 2: exit code 1: TypeError"),
    "function": (
        {"generation": fenced("def total(numbers, name):\n    return [name, sum(numbers)]"), "tests": CALLS},
        "correct",
        "passed",
    ),
}


def test_python() -> None:
    scores = graded("livecodebench", [row for row, _, _ in PYTHON.values()])
    for (name, (_, outcome, why)), score in zip(PYTHON.items(), scores, strict=True):
        assert (score.outcome, score.why.startswith(why)) == (outcome, True), (name, score)
        if outcome != "no_answer":
            assert score.fields["graded_list"] == [None if outcome == "unscored" else outcome == "correct"]


@pytest.mark.slow
def test_time_is_counted_for_each_test() -> None:
    slow = summing(
        "import time\nend = time.process_time() + 0.75\nwhile time.process_time() < end: pass\nprint(3)"
    )
    endless = summing("while True: pass")
    first, second = graded("livecodebench", [slow, endless], timeout=2.0)
    assert first.why == "test 2 of 3: another output"
    assert second.why == "test 1 of 3: timeout"


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.slow
def test_cpp() -> None:
    program = (
        '#include <cstdio>\nint main() {{ int a, b; std::scanf("%d %d", &a, &b); std::printf("%d", a {} b); }}'
    )
    rows = [{"generation": fenced(program.format(sign), mark), "tests": SUMS} for sign, mark in
            (("+", "cpp"), ("+", "c++"), ("*", "cpp"), ("?", "cpp"))]  # fmt: skip
    scores = graded("livecodebench", rows, language="cpp")
    assert [score.outcome for score in scores] == ["correct", "correct", "wrong", "wrong"]
    assert scores[3].why.startswith("not built: ")
    function = {"generation": fenced("int total();", "cpp"), "tests": CALLS}
    assert graded("livecodebench_pro", [function], language="cpp")[0].outcome == "unscored"


def test_an_interpreter_that_is_not_there_is_nobodys_fault() -> None:
    if shutil.which("pypy3"):
        pytest.skip("pypy3 is installed")
    (score,) = graded("livecodebench", [summing("print(3)")], interpreter="pypy3")
    assert (score.outcome, score.cause) == ("unscored", "harness")
    assert "pypy3" in score.why


def test_completions_may_go_on_with_what_is_given() -> None:
    given = "a, b = map(int, input().split())"
    rows = [
        summing(code, partial_solution=given) for code in ("print(a + b)", f"{given}\nprint(a + b)", "print(a)")
    ]
    assert [score.outcome for score in graded("livebench_coding", rows)] == ["correct", "correct", "wrong"]


@pytest.mark.parametrize(
    ("told", "wanted", "off", "same"),
    [
        ("1\n2\n", "1\n2", 0, True),
        (" 1 \n 2", "1\n2", 0, True),
        ("1 2", "1\n2", 0, False),
        ("1.0 x", "1 x", 0, True),
        ("1  2", "1 2", 0, True),
        ("0.3333333", "0.333333333", 0, False),
        ("0.3333333", "0.333333333", 1e-6, True),
        ("0.33", "0.333333333", 1e-6, False),
        ("1000001", "1000000", 1e-5, False),
        ("nan", "1", 1e-6, False),
        ("1e999999", "1.5", 1e-6, False),
        ("", "", 0, True),
    ],
)
def test_texts(told: str, wanted: str, off: float, same: bool) -> None:
    assert same_text(told, wanted, off) is same


def test_words_between_numbers() -> None:
    assert same_text("a  1", "a 1.0")
    assert not same_text("a  1", "a 1.0", words=False)
    assert not same_text("a  1", "a 1", words=False)
    assert same_text("2  1", "2.0 1", words=False)


def test_values() -> None:
    assert same_value("[1, 2]", "[1,2]")
    assert same_value('"x"', "x")
    assert not same_value("[1, 2]", "[2,1]")
    assert not same_value("{", "{")
    assert not same_value("[" * 100_000, "1")


def test_packed_tests_come_back_or_are_refused() -> None:
    tests = Cases(inputs=["1\n"], outputs=["2"], function="f")
    assert unpack_cases(pack_cases(tests)) == tests
    for broken in ("", "!!", "aGVsbG8=", pack_cases(tests)[:-8]):
        with pytest.raises(
            ValueError, match=r"unreadable|cut off|base64|padding|Only|Incorrect|Non-base64|Excess|data"
        ):
            unpack_cases(broken)


def test_readings_of_a_piece() -> None:
    assert next(answer_readings("  x", "a", "b")) == "  x"
    assert "y = 2" in set(answer_readings("x = 1\ny = 2\nz", "x = 1\n", "\nz"))
