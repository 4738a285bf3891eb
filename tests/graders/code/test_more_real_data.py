# SPDX-License-Identifier: Apache-2.0
"""Reference solutions of further benchmarks pass their own tests, in every language whose tools are here."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.graders.code.running_any import fenced, graded
from tests.night import NIGHTLY

from newskills.base.records import Row, Score
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, prepare_many
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.graders import make_grader

pytestmark = pytest.mark.mirror

"""Whether more of each benchmark is run."""

NAMES = (
    *("mbpp-plus", "human-eval-infilling", "bigcodebench-hard", "code_contests-deepscaler", "humaneval-x"),
    *("multipl-e-humaneval", "verilog-eval", "kernelbench"),
)
TOOLS = {"cpp": "g++", "js": "node", "java": "javac", "python": "python3", "go": "go", "rust": "rustc"}
PLACES = "/usr/bin:/usr/local/bin:/bin"
"""What the sandbox sees of tools."""
NOT_RIGHT = {
    "JavaScript/112": "its own test fails, which Node.js tells on the error stream only",
    "JavaScript/155": "its own test fails, which Node.js tells on the error stream only",
    "JavaScript/162": "the solution needs js-md5",
}


OTHER_LIBRARIES = get_benchmark("bigcodebench-hard").misprints
"""Tasks whose own solution fails its tests with libraries that are newer than they are."""


@pytest.fixture(scope="module")
def prepared(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    options = FetchOptions(mirror=str(mirror), offline=True)
    for result in prepare_many([get_benchmark(name) for name in NAMES], data_dir=folder, options=options):
        assert not isinstance(result, Exception), result
    return folder


@cache
def rows(folder: Path, name: str, split: str = "test") -> list[Row]:
    return list(read_rows(load_rows(get_benchmark(name), split, folder)))


def judged(name: str, problems: list[Row], answers: list[str], preload: tuple[str, ...] = ()) -> list[Score]:
    benchmark = get_benchmark(name)
    asked = [{**row, "generation": answer} for row, answer in zip(problems, answers, strict=True)]
    return graded(benchmark.grader, asked, preload=preload, **benchmark.grader_config)


def failed(problems: list[Row], scores: list[Score]) -> dict[str, str]:
    """Answers to tests that need what the sandbox lacks are left out."""
    pairs = [
        (row, s) for row, s in zip(problems, scores, strict=True) if "which is not in the sandbox" not in s.why
    ]
    return {row["id"]: s.why for row, s in pairs if s.outcome != "correct"}


@pytest.mark.nightly
def test_mbpp_plus(prepared: Path) -> None:
    pytest.importorskip("numpy", reason="its tests need numpy")
    every = rows(prepared, "mbpp-plus")
    large = [row for row in every if row["id"] in ("Mbpp/255", "Mbpp/599")]
    problems = [*every[::16], *large]
    scores = judged("mbpp-plus", problems, [fenced(row["canonical_solution"]) for row in problems], ("numpy",))
    assert failed(problems, scores) == {}
    others = [fenced(f"def {row['entry_point']}(*given):\n    return 'no'") for row in problems]
    assert {score.outcome for score in judged("mbpp-plus", problems, others, ("numpy",))} == {"wrong"}


@pytest.mark.parametrize(
    "split",
    [
        "single_line",
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("random_span", "multi_line", "random_span_light")
        ),
    ],
)
def test_infilling(prepared: Path, split: str) -> None:
    every = rows(prepared, "human-eval-infilling", split)
    problems = every[:: len(every) // 5]
    for answers in (
        [f"```python\n{row['canonical_solution']}\n```" for row in problems],
        [row["canonical_solution"] for row in problems if row["canonical_solution"].strip()],
    ):
        some = (
            problems if len(answers) == len(problems) else [r for r in problems if r["canonical_solution"].strip()]
        )
        assert failed(some, judged("human-eval-infilling", some, answers)) == {}
    nothing = judged("human-eval-infilling", problems, ["```python\n(\n```"] * len(problems))
    assert {score.outcome for score in nothing} == {"wrong"}


@pytest.mark.slow
@pytest.mark.nightly
def test_bigcodebench(prepared: Path) -> None:
    """What the sandbox has libraries for is right, all else unscored."""
    problems = rows(prepared, "bigcodebench-hard", "v0.1.4")[:: 1 if NIGHTLY else 10]
    answers = [fenced(row["code_prompt"] + row["canonical_solution"]) for row in problems]
    scores = judged("bigcodebench-hard", problems, answers)
    lost = {
        row["id"]: s.why for row, s in zip(problems, scores, strict=True) if s.outcome in ("wrong", "no_answer")
    }
    assert lost.keys() <= OTHER_LIBRARIES.keys(), lost
    assert Counter(score.outcome for score in scores)["correct"] >= len(problems) // 4
    wrong = judged(
        "bigcodebench-hard", problems, [fenced("def task_func(*given, **named):\n    return {}")] * len(problems)
    )
    assert {score.outcome for score in wrong} <= {"wrong", "unscored"}


@pytest.mark.nightly
@pytest.mark.parametrize(
    "language",
    [pytest.param(name, marks=pytest.mark.nightly if name in ("java", "go", "rust") else ()) for name in TOOLS],
)
def test_humaneval_x(prepared: Path, language: str) -> None:
    problems = [row for row in rows(prepared, "humaneval-x") if row["language"] == language]
    assert len(problems) == 164
    problems = problems[2 :: 40 if NIGHTLY else 80] + [row for row in problems if row["id"] in NOT_RIGHT]
    whole = [fenced(row["prompt"] + row["canonical_solution"], language) for row in problems]
    scores = judged("humaneval-x", problems, whole)
    if not shutil.which(TOOLS[language], path=PLACES):
        assert {score.outcome for score in scores} == {"unscored"}
        assert all(TOOLS[language] in score.why for score in scores)
        return
    assert failed(problems, scores).keys() <= NOT_RIGHT.keys()
    rest = [row["canonical_solution"] for row in problems]
    assert failed(problems, judged("humaneval-x", problems, rest)).keys() <= NOT_RIGHT.keys()
    nothing = judged("humaneval-x", problems[:3], [fenced("}", language)] * 3)
    assert {score.outcome for score in nothing} == {"wrong"}


HAND = {
    ("sh", "HumanEval_23_strlen"): "    echo ${#1}\n}\n",
    ("sh", "HumanEval_53_add"): "    echo $(($1 + $2))\n}\n",
    ("java", "HumanEval_53_add"): "        return x + y;\n    }\n",
    ("java", "HumanEval_23_strlen"): "        return (long) string.length();\n    }\n",
    ("rust", "HumanEval_53_add"): "    x + y\n}\n",
    ("go", "HumanEval_53_add"): "    return x + y\n}\n",
}
MORE_TOOLS = TOOLS | {"sh": "bash"}
SAME_FUNCTIONS = (0, 4, 16, 24, 40)
"""Problems whose solutions of HumanEval-X fit the tests of MultiPL-E."""


@pytest.mark.nightly
def test_multipl_e_by_solutions_of_its_relative(prepared: Path) -> None:
    """It has no solutions of its own; HumanEval-X has the same functions under other names and types."""
    theirs = {row["id"]: row for row in rows(prepared, "humaneval-x")}
    ours = {(row["language"], int(row["id"].split("_")[1])): row for row in rows(prepared, "multipl-e-humaneval")}
    asked, answers = [], []
    for number in SAME_FUNCTIONS:
        known = theirs[f"JavaScript/{number}"]
        row = ours["js", number]
        code = known["prompt"] + known["canonical_solution"]
        asked.append(row)
        answers.append(fenced(f"{code}\nconst {row['entry_point']} = {known['entry_point']};", "js"))
        known = theirs[f"CPP/{number}"]
        asked.append(ours["cpp", number])
        answers.append(fenced(re.sub(r"\bint\b", "long", known["prompt"] + known["canonical_solution"]), "cpp"))
    for row, score in zip(asked, judged("multipl-e-humaneval", asked, answers), strict=True):
        there = shutil.which(MORE_TOOLS[row["language"]], path=PLACES)
        assert score.outcome == ("correct" if there else "unscored"), (row["id"], score.why)


@pytest.mark.nightly
def test_multipl_e_by_hand(prepared: Path) -> None:
    found = {(row["language"], row["id"].partition("/")[2]): row for row in rows(prepared, "multipl-e-humaneval")}
    asked = [found[key] for key in HAND]
    right = judged("multipl-e-humaneval", asked, [fenced(code, key[0]) for key, code in HAND.items()])
    wrong = judged("multipl-e-humaneval", asked, [fenced("}", key[0]) for key in HAND])
    for row, good, bad in zip(asked, right, wrong, strict=True):
        tool = MORE_TOOLS[row["language"]]
        if shutil.which(tool, path=PLACES):
            assert (good.outcome, bad.outcome) == ("correct", "wrong"), (row["id"], good.why, bad.why)
        else:
            assert (good.outcome, tool in good.why) == ("unscored", True), (row["id"], good.why)


def test_heads_of_multipl_e(prepared: Path) -> None:
    found = rows(prepared, "multipl-e-humaneval")
    assert Counter(row["language"] for row in found) == {
        "cpp": 161, "go": 154, "java": 158, "js": 161, "rust": 156, "sh": 158
    }  # fmt: skip
    assert all(row["entry_point"] in row["prompt"] for row in found)
    assert all(row["closing"].strip() == "}" for row in found if row["language"] in ("cpp", "java", "rust", "sh"))


def test_contests(prepared: Path) -> None:
    """There are no solutions: one by hand, and what cannot be one."""
    problems = rows(prepared, "code_contests-deepscaler")
    assert all(len(row["tests"]["inputs"]) == len(row["tests"]["outputs"]) > 0 for row in problems)
    books = (
        "n, m = map(int, input().split())\nbooks = [input().strip() for _ in range(n)]\n"
        "key = lambda i: [ord(c) if at % 2 == 0 else -ord(c) for at, c in enumerate(books[i])]\n"
        "print(*[i + 1 for i in sorted(range(n), key=key)])"
    )
    right, wrong = judged("code_contests-deepscaler", [problems[0]] * 2, [fenced(books), fenced("print(1)")])
    assert (right.outcome, wrong.outcome) == ("correct", "wrong")


@pytest.mark.skipif(not shutil.which("iverilog"), reason="needs iverilog")
def test_verilog(prepared: Path) -> None:
    problems = rows(prepared, "verilog-eval")[::6]
    scores = judged("verilog-eval", problems, [fenced(row["canonical_solution"], "verilog") for row in problems])
    assert Counter(score.outcome for score in scores)["correct"] >= len(problems) - 2
    assert {score.outcome for score in scores} <= {"correct", "unscored"}, "old versions do not know all of it"
    claims = (
        "module TopModule(output reg zero); initial begin zero = 1; "
        '$display("Mismatches: 0 in 20 samples"); end endmodule'
    )
    score = judged("verilog-eval", problems[:1], [fenced(claims, "verilog")])[0]
    assert (score.outcome, score.why) == ("wrong", "20 mismatches in 20 samples")


def test_kernels_are_never_judged(prepared: Path) -> None:
    problems = rows(prepared, "kernelbench")
    assert Counter(row["subset_for_metrics"] for row in problems) == {"level1": 100, "level2": 100, "level3": 50}
    assert {score.outcome for score in judged("kernelbench", problems[:1], [fenced("x = 1")])} == {"unscored"}


def test_gold_replies_are_known() -> None:
    for name, field in (("bird", "gt_sql"), ("bigcodebench", "canonical_solution")):
        made = make_grader(name, {})
        assert "SELECT 1" in made.gold_reply({field: "SELECT 1"})
