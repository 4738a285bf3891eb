# SPDX-License-Identifier: Apache-2.0
"""No answer in any language passes by what it does to its tests, and no right one fails for what it is made of."""

from __future__ import annotations

import shutil

import pytest
from tests.graders.code.forgeries import CPP, FORGERIES, HONEST
from tests.graders.code.running_any import fenced, graded

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
    task, forgeries = FORGERIES[language]
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
    "nothing": "}",
    "return": "    return 0;\n}",
    "a name": "    return EXIT_SUCCESS;\n}",
    "braces": "    { return (0); }\n}",
    "arguments, and a comment with a brace": "    return argc > 100;\n}\n// }\n",
    "a function behind": "    return helper();\n}\nint helper() { return 0; }\n",
    "exit": "    exit(0);\n}",
}


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.slow
def test_main_may_end_in_any_way() -> None:
    """Each way with a right answer, and with a wrong one."""
    rows = [
        {
            **answered({**CPP, "tests": f"}}\nint helper();\n{head}\n    assert(string_length(\"x\") == 1);\n{end}"}, "cpp", code)
        }
        for end in ENDINGS.values()
        for head in ("int main(int argc, char **argv) {",)
        for code in ("    return string.size();\n}", "    return 0;\n}")
    ]  # fmt: skip
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
