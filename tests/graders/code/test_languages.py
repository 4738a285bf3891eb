# SPDX-License-Identifier: Apache-2.0
"""Answers in other languages, whole or going on with what is given; and those that end before their tests do."""

from __future__ import annotations

import shutil

import pytest
from tests.graders.code.running_any import fenced, graded

from newskills.base.records import Row
from newskills.benchmarks.code.multilingual import humaneval_x, multipl_e

CPP = {
    "name": "HumanEval_23_strlen",
    "language": "cpp",
    "prompt": "#include<assert.h>\n#include<bits/stdc++.h>\n// Length\nlong string_length(std::string string) {\n",
    "tests": '}\nint main() {\n    auto candidate = string_length;\n    assert(candidate(("x")) == (1));\n}\n',
    "stop_tokens": ["\n}"],
}
JS = {
    "name": "HumanEval_23_strlen",
    "language": "js",
    "prompt": "//Length\nfunction strlen(string){\n",
    "tests": "const assert = require('node:assert');\nfunction test() {\n  let candidate = strlen;\n"
    '  assert.deepEqual(candidate("x"),1);\n}\n\ntest();',
    "stop_tokens": ["\nfunction "],
}
JAVA = {
    "name": "HumanEval_23_strlen",
    "language": "java",
    "prompt": "import java.util.*;\nimport org.javatuples.*;\nclass Problem {\n    // Length\n"
    "    public static long strlen(String string) {\n",
    "tests": '    }\n    public static void main(String[] args) {\n    assert(strlen(("x")) == (1l));\n    }\n\n}\n',
    "stop_tokens": ["\n    }\n"],
}
BASH = {
    "name": "HumanEval_23_strlen",
    "language": "sh",
    "prompt": "#!/bin/bash\n# Length\nstrlen() {\n",
    "tests": "}\n\ncandidate() {\n    strlen \"$@\"\n}\n\n"
    "set -e\nrun_test() {\n    [[ $(candidate \"x\") = \"1\" ]]\n}\n\nrun_test",
    "stop_tokens": ["\n}"],
}  # fmt: skip
WITH_HELPER = {
    "_file": "cpp/data/humaneval_cpp.jsonl",
    "task_id": "CPP/1",
    "prompt": "#include<string>\nusing namespace std;\nint one(){\n    return 1;\n}\n/* two */\nint two(int x){\n",
    "declaration": "#include<string>\nusing namespace std;\nint one(){\n    return 1;\n}\nint two(int x){\n",
    "canonical_solution": "    return one() + x;\n}\n",
    "test": "#undef NDEBUG\n#include<assert.h>\nint main(){\n    assert (two(1) == 2);\n}\n",
}
NEEDS = {"cpp": "g++", "js": "node", "java": "javac", "sh": "bash"}
ANSWERS: dict[str, tuple[Row, list[tuple[str, str]]]] = {
    "cpp": (
        CPP,
        [
            ("    return string.size();\n}", "correct"),
            ("long string_length(std::string string) {\n  return string.size();\n}\nint main() {}", "correct"),
            ("    return 0;", "wrong"),
            ("    exit(0);", "wrong"),
        ],
    ),
    "js": (
        JS,
        [
            ("  return string.length;\n}", "correct"),
            ("const strlen = (string) => string.length;", "correct"),
            ("  return 0;\n}", "wrong"),
            ("  process.exit(0);\n}", "wrong"),
            ("  return require('no-such-module');\n}", "wrong"),
        ],
    ),
    "java": (
        JAVA,
        [
            ("        return string.length();\n    }\n}", "correct"),
            (
                "public class Problem {\n  public static long strlen(String s) {\n    return s.length();\n  }\n}",
                "correct",
            ),
            ("        return 0;\n", "wrong"),
            ("        System.exit(0); return 1;\n", "wrong"),
        ],
    ),
    "sh": (
        BASH,
        [
            ('    echo "${#1}"\n}', "correct"),
            ('strlen() {\n  echo "${#1}"\n}', "correct"),
            ("    echo 2", "wrong"),
            ("    echo 1\n}\nexit 0", "correct"),
        ],
    ),
}


@pytest.mark.parametrize("language", ANSWERS)
def test_answers(language: str) -> None:
    if not shutil.which(NEEDS[language]):
        pytest.skip(f"needs {NEEDS[language]}")
    raw, answers = ANSWERS[language]
    row = multipl_e(raw, 0)
    scores = graded("code_tests", [{**row, "generation": fenced(code, language)} for code, _ in answers])
    assert [score.outcome for score in scores] == [outcome for _, outcome in answers], scores


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_helpers_that_are_given_may_be_left_out_or_repeated() -> None:
    row = humaneval_x(WITH_HELPER, 0)
    whole = "int two(int x){\n    return one() + x;\n}"
    codes = [whole, f"int one(){{\n  return 1;\n}}\n{whole}", "    return one() + x;\n}"]
    scores = graded("code_tests", [{**row, "generation": fenced(code, "cpp")} for code in codes])
    assert [score.outcome for score in scores] == ["correct"] * 3, scores


def test_what_cannot_run_here_is_unscored() -> None:
    row = {**humaneval_x(WITH_HELPER, 0), "generation": fenced("x", "cobol")}
    absent = [{**row, "language": "cobol"}]
    absent += [{**row, "language": "go", "prompt": "func F(", "test": ""}] if not shutil.which("go") else []
    for score in graded("code_tests", absent):
        assert (score.outcome, score.cause) == ("unscored", "harness"), score


UNIT = (
    "import unittest\nfrom unittest.mock import patch\nclass TestCases(unittest.TestCase):\n"
    "    @patch('math.sqrt')\n    def test_one(self, root):\n        root.return_value = 7\n"
    "        self.assertEqual(task_func(4), 7)\n"
    "    def test_two(self):\n        self.assertEqual(task_func(4), 2)\n"
)
HEAD = "import math\ndef task_func(x):\n"
UNITS = {
    "right": ("import math\ndef task_func(x):\n    return math.sqrt(x)", "correct", ""),
    "the head is there": ("def task_func(x):\n    return math.sqrt(x)", "correct", ""),
    "wrong": ("def task_func(x):\n    return 2", "wrong", "failed: test_one: AssertionError: 2 != 7"),
    "leaves": ("import os\ndef task_func(x):\n    os._exit(0)", "wrong", "ended before its tests"),
    "leaves at once": ("raise SystemExit", "wrong", "load: SystemExit"),
    "own tests": (
        "import unittest\nclass TestMine(unittest.TestCase):\n    def test_one(self): pass\n"
        "    def test_two(self): pass",
        "wrong",
        "failed: test_one: AssertionError: None",
    ),
    "takes the runner away": (
        "import unittest\nunittest.TestResult = lambda: None\ndef task_func(x):\n    return 2",
        "wrong",
        "failed: test_one: AssertionError: 2 != 7",
    ),
    "endless": ("while True: pass", "wrong", "timeout"),
    "no program": ("def task_func(x)\n    return", "wrong", "load: SyntaxError"),
}


def test_units() -> None:
    rows = [
        {"generation": fenced(code), "test": UNIT, "code_prompt": HEAD, "entry_point": "task_func"}
        for code, _, _ in UNITS.values()
    ]
    scores = graded("bigcodebench", rows, timeout=2.0)
    for (name, (_, outcome, why)), score in zip(UNITS.items(), scores, strict=True):
        assert (score.outcome, score.why.startswith(why)) == (outcome, True), (name, score)
        assert score.fields["status"] == ("pass" if outcome == "correct" else "fail")


def test_libraries_that_are_missing_fail_nobody() -> None:
    row = {
        "generation": fenced("def task_func(): return 1"),
        "code_prompt": "import no_such_library\ndef task_func():\n",
    }
    (score,) = graded("bigcodebench", [{**row, "test": UNIT}])
    assert (score.outcome, score.why) == ("unscored", "not in the sandbox: no_such_library")


def test_styles() -> None:
    fixture = (
        "class TestIt:\n    def test_it(self, tmp_path, capsys):\n"
        "        say()\n        assert capsys.readouterr().out == 'hi\\n'\n"
    )
    script = (
        "def run(text):\n    space = {}\n    exec(text, space)\n    assert space['result'] == 5\nrun(answer)\n"
    )
    rows = [
        {"generation": fenced("def say(): print('hi')"), "style": "pytest", "test": fixture},
        {"generation": fenced("def say(): print('no')"), "style": "pytest", "test": fixture},
        {"generation": fenced("result = 5"), "style": "script", "test": script},
        {"generation": fenced("result = 6"), "style": "script", "test": script},
        {"generation": fenced("class A {}"), "style": "junit", "test": ""},
    ]
    scores = graded("code_tests", rows)
    assert [score.outcome for score in scores] == ["correct", "wrong", "correct", "wrong", "unscored"], scores
