# SPDX-License-Identifier: Apache-2.0
"""No answer in any language passes by what it does to its tests, and no right one fails for what it is made of."""

from __future__ import annotations

import shutil

import pytest
from tests.graders.code.forgeries import CPP, FORGERIES, HONEST
from tests.graders.code.more_forgeries import MORE
from tests.graders.code.running_any import fenced, graded
from tests.night import NIGHTLY

from newskills.base.records import Row
from newskills.benchmarks.code.multilingual import multipl_e

NEEDS = {"cpp": "g++", "js": "node", "java": "javac", "sh": "bash", "rust": "rustc", "go": "go"}
PLACES = "/usr/bin:/usr/local/bin:/bin"
"""What the sandbox sees of tools."""
LANGUAGES = [
    pytest.param(
        name,
        marks=[pytest.mark.skipif(not shutil.which(NEEDS[name], path=PLACES), reason=f"needs {NEEDS[name]}")]
        + ([pytest.mark.slow] if name in ("cpp", "java") else []),
    )
    for name in FORGERIES
]


def answered(task: Row, language: str, code: str) -> Row:
    return {**multipl_e(task, 0), "generation": fenced(code, language)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_forgery_passes(language: str) -> None:
    task, first = FORGERIES[language]
    more = list(MORE[language].items())[:: 1 if NIGHTLY or language == "sh" else 3]
    forgeries = first | dict(more)
    scores = graded("code_tests", [answered(task, language, code) for code in forgeries.values()])
    outcomes = {name: (s.outcome, s.why) for name, s in zip(forgeries, scores, strict=True)}
    assert {name: told for name, told in outcomes.items() if told[0] != "wrong"} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_honest_answers_pass(language: str) -> None:
    task, _ = FORGERIES[language]
    scores = graded("code_tests", [answered(task, language, code) for code in HONEST[language]])
    assert [(score.outcome, score.fields.get("suspicious")) for score in scores] == [("correct", None)] * len(
        scores
    )


def test_what_an_answer_tried_is_counted() -> None:
    task, forgeries = FORGERIES["sh"]
    (score,) = graded("code_tests", [answered(task, "sh", forgeries["the bracket and exit"])])
    assert score.fields["suspicious"] == "replaces commands"


ENDINGS = {
    "return": "    return 0;\n}",
    "a name in braces, and a comment with a brace": "    { return (EXIT_SUCCESS); }\n}\n// }\n",
    "arguments, and a function behind": "    return helper() + (argc > 100);\n}\nint helper() { return 0; }\n",
    "exit": "    exit(0);\n}",
}


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.slow
def test_main_may_end_in_any_way() -> None:
    """Each way with a right answer, and with a wrong one."""
    begun = '}\nint helper();\nint main(int argc, char **argv) {\n    assert(string_length("x") == 1);\n'
    codes = ("    return string.size();\n}", "    return 0;\n}")
    rows = [answered({**CPP, "tests": begun + end}, "cpp", code) for end in ENDINGS.values() for code in codes]
    scores = graded("code_tests", rows)
    assert [score.outcome for score in scores] == ["correct", "wrong"] * len(ENDINGS), scores


TOGETHER: Row = {
    "style": "program",
    "language": "cpp",
    "prompt": "struct Point { int x, y; };\nint sum(Point p) {\n",
    "entry_point": "sum",
    "test": "#include <cassert>\nint main() {\n    assert(sum({1, 2}) == 3);\n    return 0;\n}\n",
    "closing": "}\n",
    "stop_tokens": ["\n}"],
}


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.slow
def test_calls_that_cannot_be_carried_are_judged_together_and_said_to_be() -> None:
    codes = ["    return p.x + p.y;\n}", "    return 0;\n}", "    exit(0);\n}"]
    codes.append("    return 1;\n}\n#define assert(x) (void)0\n#define if(x) if(false)")
    scores = graded("code_tests", [{**TOGETHER, "generation": fenced(code, "cpp")} for code in codes])
    assert [score.outcome for score in scores] == ["correct", "wrong", "wrong", "wrong"], scores
    assert all("tests share its process" in score.fields["suspicious"] for score in scores)


RUST_IN_PLACE: Row = {
    "style": "program",
    "language": "rust",
    "prompt": "fn double(list: &mut Vec<i64>) {\n",
    "entry_point": "double",
    "test": "fn main() {\n    let mut list = vec![1, 2];\n    double(&mut list);\n"
    "    assert_eq!(list, vec![2, 4]);\n}\n",
    "closing": "}\n",
    "stop_tokens": ["\n}"],
}


@pytest.mark.skipif(not shutil.which("rustc", path=PLACES), reason="needs rustc")
@pytest.mark.slow
def test_tests_in_main_run_beside_a_rust_answer_too() -> None:
    """What it changes in place cannot be carried. Built as a test harness, such a program would test nothing."""
    codes = ["    for each in list.iter_mut() { *each *= 2; }\n}", "    list.clear();\n}", '    panic!("no");\n}']
    codes.append("fn double(list: &mut Vec<i64>) { list.clear(); }\nfn main() {}")
    scores = graded("code_tests", [{**RUST_IN_PLACE, "generation": fenced(code, "rust")} for code in codes])
    assert [score.outcome for score in scores] == ["correct", "wrong", "wrong", "wrong"], scores


MORE_OF_ANSWER = {
    "js": (
        "// Doubles.\nfunction double(x) {\n",
        "if (double(2) !== 4 || half(4) !== 2) throw new Error('wrong');",
        "function double(x) { return 2 * x; }\nfunction half(x) { return x / 2; }",
        "function double(x) { return 2 * x; }\nfunction half(x) { return x; }",
    ),
    "sh": (
        "# Doubles.\ndouble() {\n",
        "set -e\n[[ $(double 2) = 4 ]]\n[[ $(half 4) = 2 ]]",
        "double() {\n  echo $((2 * $1))\n}\nhalf() {\n  echo $(($1 / 2))\n}",
        "double() {\n  echo $((2 * $1))\n}\nhalf() {\n  echo 1\n}",
    ),
}


@pytest.mark.parametrize("language", [name for name in MORE_OF_ANSWER if shutil.which(NEEDS[name], path=PLACES)])
def test_tests_may_call_more_of_an_answer_than_its_function(language: str) -> None:
    prompt, test, *codes = MORE_OF_ANSWER[language]
    row = {"style": "program", "language": language, "prompt": prompt, "entry_point": "double", "test": test}
    scores = graded("code_tests", [{**row, "generation": fenced(code, language)} for code in codes])
    assert [score.outcome for score in scores] == ["correct", "wrong"], scores


THROWS = """const assert = require('node:assert');
assert.throws(() => root(-1), RangeError);
const list = [3, 1, 2];
assert.deepEqual(root(list), undefined);
assert.deepStrictEqual(list, [1, 2, 3]);
assert.deepStrictEqual(root(new Map([['a', NaN]])), new Map([['a', -0]]));
"""
SORTS = """function root(x) {
  if (x === -1) throw new RangeError('negative');
  if (Array.isArray(x)) { x.sort(); return; }
  return new Map(Array.from(x.keys(), (key) => [key, -0]));
}"""


@pytest.mark.skipif(not shutil.which("node", path=PLACES), reason="needs node")
def test_errors_changed_arguments_and_odd_values_arrive() -> None:
    row = {"style": "program", "language": "js", "prompt": "function root(x) {\n", "entry_point": "root"}
    codes = [SORTS, SORTS.replace("RangeError", "Error"), SORTS.replace("x.sort()", "x"), SORTS.replace("-0", "0")]
    scores = graded("code_tests", [{**row, "test": THROWS, "generation": fenced(code, "js")} for code in codes])
    assert [score.outcome for score in scores] == ["correct", "wrong", "wrong", "wrong"], scores
    assert not any("suspicious" in score.fields for score in scores)


NEAR = {
    "js": (
        "function root(x) {\n",
        "if (Math.abs(root(4) - 2) > 1e-6) throw new Error('wrong');",
        "function root(x) { return Math.sqrt(x); }",
        "function root(x) { return NaN; }",
    ),
    "cpp": (
        "#include <cmath>\ndouble root(double x) {\n",
        "#include <cstdlib>\nint main() { if (std::abs(root(4) - 2) > 1e-6) abort(); }",
        "#include <cmath>\ndouble root(double x) { return sqrt(x); }",
        "#include <cmath>\ndouble root(double x) { return NAN; }",
    ),
    "java": (
        "class Solution {\n    public double root(double x) {\n",
        "public class Main {\n  public static void main(String[] a) {\n"
        '    Object known = new Object() { public String toString() { return "known"; } };\n'
        "    if (Math.abs(new Solution().root(4) - 2) > 1e-6) throw new AssertionError();\n"
        '    Object late = new Object() { public String toString() { return "late"; } };\n'
        '    if (!late.toString().equals("late")) throw new AssertionError();\n  }\n}',
        "class Solution { public double root(double x) { return Math.sqrt(x); } }",
        "class Solution { public double root(double x) { return 0.0 / 0.0; } }",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", [name for name in NEAR if shutil.which(NEEDS[name], path=PLACES)])
def test_what_is_no_number_is_not_near_one(language: str) -> None:
    """The tests of HumanEval-X in C++ and Java ask whether a result is too far off. And classes of tests stay there."""
    prompt, test, *codes = NEAR[language]
    row = {"style": "program", "language": language, "prompt": prompt, "entry_point": "root", "test": test}
    scores = graded("code_tests", [{**row, "generation": fenced(code, language)} for code in codes])
    assert [score.outcome for score in scores] == ["correct", "wrong"], scores
    assert not any("suspicious" in score.fields for score in scores)
