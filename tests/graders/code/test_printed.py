# SPDX-License-Identifier: Apache-2.0
"""`code_exec`: programs run on every test case of their record, and what they print is kept."""

from __future__ import annotations

from tests.graders.code.running_any import fenced, graded

from newskills.base.records import Row

TWICE = "print(2 * int(input()))"
CASES = [{"input": "1\n", "output": "2"}, {"input": "20\n", "output": "40\n"}, {"input": "-3\n", "output": "-6"}]


def row(code: str) -> Row:
    return {"id": "x", "test_cases": CASES, "generation": fenced(code)}


def test_all_tests_are_run_and_told() -> None:
    right, half, raising, endless, given, broken, nothing, untested = graded(
        "code_exec",
        [
            row(TWICE),
            row("print(abs(2 * int(input())))"),
            row("print(2 * missing)"),
            row("n = int(input())\nwhile n == 20: pass\nprint(2 * n)"),
            {**row("0"), "code": TWICE},
            row("print("),
            {"id": "x", "test_cases": CASES, "generation": "```python\nprint("},
            {"id": "x", "test_cases": [], "generation": fenced(TWICE)},
        ],
        timeout=1,
        max_output_characters=2,
    )
    assert [one.outcome for one in (right, half, raising, endless)] == ["correct", "wrong", "wrong", "wrong"]
    assert given.outcome == "correct", "a program in `code` is what is run"
    assert (broken.outcome, nothing.outcome) == ("wrong", "no_answer")
    assert (untested.outcome, untested.cause) == ("unscored", "data")
    assert right.fields["code_execution"] == {
        "process_status": ["completed"] * 3,
        "correct_tests": [True] * 3,
        "average_test_score": 1.0,
        "stdouts": ["2\n", "40", "-6"],
        "stderrs": [""] * 3,
    }
    assert half.fields["code_execution"]["correct_tests"] == [True, True, False]
    assert half.why == "test 3 of 3: another output"
    assert raising.fields["code_execution"]["process_status"] == ["error"] * 3
    assert raising.fields["code_execution"]["stderrs"][0] == "Tr"
    assert endless.fields["code_execution"]["process_status"] == ["completed", "timeout", "completed"]


def test_other_languages() -> None:
    program = "read n; echo $((2 * n))"
    answers = [{"test_cases": CASES, "generation": fenced(code, "bash")} for code in (program, "echo 2")]
    assert [one.outcome for one in graded("code_exec", answers, language="sh")] == ["correct", "wrong"]
