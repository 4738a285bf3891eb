# SPDX-License-Identifier: Apache-2.0
"""Verdicts on answers, honest and hostile, in the real sandbox."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graders.code.attacks import ALL, PEEKS, SLOW, TESTS, WORD
from tests.graders.code.running import fenced, grade_all

from newskills.base import aio
from newskills.base.errors import ConfigError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Kit
from newskills.base.records import Row, Score
from newskills.graders import is_executing, make_grader
from newskills.graders.code.evalplus import EvalPlusGrader
from newskills.metrics import make_metric

HEAD = "import math\nfrom typing import List\n\n\ndef half(x: float) -> float:\n    return x / 2\n\n\n"
PROMPT = f'{HEAD}def area(sides: List[float]) -> float:\n    """Product of the sides."""\n'
CHECK = "def check(candidate):\n    assert candidate([2.0, half(6.0)]) == 6.0\n    assert candidate([]) == 1\n"
BODY = "    return math.prod(sides)"


def listed(code: str, *tests: str, **more: Any) -> Row:
    return {"generation": fenced(code), "entry_point": "f", "test_list": list(tests), **more}


def headed(answer: str) -> Row:
    return {"generation": answer, "prompt": PROMPT, "entry_point": "area", "test": CHECK}


NODE = "class Node:\n    def __init__(self, data):\n        self.data, self.left = data, None\n"
TREE = "root = Node(1)\nroot.left = Node(2)\nroot.left.left = Node(3)"
DEPTH = "def f(node):\n    return 1 + f(node.left) if node else 0\n"

HONEST: dict[str, tuple[Row, str, str]] = {
    "right": (listed("def f(x):\n    return x * x", *TESTS), "correct", "passed"),
    "wrong": (listed("def f(x):\n    return x + x", *TESTS), "wrong", "assertion: test 2 of 4"),
    "lambda": (listed("f = lambda x: x * x", *TESTS), "correct", "passed"),
    "whole function": (headed(fenced(f"def area(sides: List[float]) -> float:\n{BODY}")), "correct", "passed"),
    "with the head": (headed(fenced(f"{PROMPT}{BODY}")), "correct", "passed"),
    "only the body": (headed(fenced(BODY)), "correct", "passed"),
    "only the body, no block": (headed(BODY), "correct", "passed"),
    "future import": (
        headed(fenced(f"from __future__ import annotations\ndef area(sides: Unknown) -> float:\n{BODY}")),
        "correct",
        "passed",
    ),
    "own helper of that name": (
        headed(fenced("def half(x):\n    return 0\ndef area(sides):\n    return 0 if sides else 1")),
        "wrong",
        "assertion: test 1 of 1",
    ),
    "syntax": (listed("def f(x)\n    return x", *TESTS), "wrong", "load: SyntaxError: "),
    "prose": (headed("I cannot do that."), "no_answer", "no code (no program)"),
    "nothing": (headed(""), "no_answer", "no code (empty)"),
    "cut off": (headed("```python\ndef area("), "no_answer", "no code (unclosed)"),
    "another name": (
        listed("def g(x):\n    return x", *TESTS),
        "wrong",
        "exception: test 1 of 4: NameError: name 'f'",
    ),
    "error": (listed("def f(x):\n    return x / 0", *TESTS), "wrong", "exception: test 1 of 4: ZeroDivisionError"),
    "own exception": (
        listed("class Odd(Exception): pass\ndef f(x):\n    raise Odd('x')", *TESTS),
        "wrong",
        "exception: test 1 of 4: Odd: x",
    ),
    "prints a lot": (
        listed("print('x' * 10**7)\ndef f(x):\n    print(x)\n    return x * x", *TESTS),
        "correct",
        "passed",
    ),
    "reads input": (listed("n = input()\ndef f(x):\n    return x * x", *TESTS), "wrong", "load: EOFError"),
    "main guard": (
        listed("def f(x):\n    return x * x\nif __name__ == '__main__':\n    f(int(input()))", *TESTS),
        "correct",
        "passed",
    ),
    "expected error": (
        listed(
            "def f(x):\n    raise ValueError('no')",
            "try:\n    f(1)\nexcept ValueError as e:\n    assert str(e) == 'no'\nelse:\n    assert False",
        ),
        "correct",
        "passed",
    ),
    "tuples stay tuples": (
        listed("def f(x):\n    return x, [x]", "assert f((1,)) == ((1,), [(1,)])"),
        "correct",
        "passed",
    ),
    "a list for a tuple": (
        listed("def f(x):\n    return [x]", "assert f(1) == (1,)"),
        "wrong",
        "assertion: test 1 of 1",
    ),
    "generator": (
        listed("def f(n):\n    yield from range(n)", "assert list(f(3)) == [0, 1, 2]"),
        "correct",
        "passed",
    ),
    "generator for a list": (
        listed("def f(n):\n    yield 1", "assert f(3) == [1]"),
        "wrong",
        "assertion: test 1 of 1",
    ),
    "closure": (listed("def f(n):\n    return lambda m: n + m", "assert f(3)(4) == 7"), "correct", "passed"),
    "method": (
        listed(
            "class f:\n    def __init__(self, n): self.n = n\n    def two(self): return self.n * 2",
            "assert f(3).two() == 6",
        ),
        "correct",
        "passed",
    ),
    "objects of the answer": (
        listed(NODE + DEPTH, "assert f(root) == 3", names=["f", "Node"], test_setup_code=TREE),
        "correct",
        "passed",
    ),
    "a builtin's name": (
        {**listed("def g(a, b):\n    return a + b", "assert max(2, 3) == 3"), "entry_point": "max"},
        "wrong",
        "exception: test 1 of 1: NameError: name 'max' is not defined",
    ),
    "numpy": (listed("import numpy as np\ndef f(x):\n    return np.int64(x) ** 2", *TESTS), "correct", "passed"),
    "dataclass": (
        listed(
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f(x):\n    return P(x).x ** 2",
            *TESTS,
        ),
        "correct",
        "passed",
    ),
    "sets have one order": (
        listed(
            "def f(words):\n    return list(set(words))",
            "a = f(list('abcdefgh'))\nassert a == f(list('abcdefgh'))",
        ),
        "correct",
        "passed",
    ),
    "arguments are the answer's own": (
        listed("def f(a):\n    a.clear()\n    return 0", "a = [1]\nassert f(a) == 0\nassert a == [1]"),
        "correct",
        "passed",
    ),
    "plus tests pass": (
        listed("def f(x):\n    return x * x", "assert f(2) == 4", plus_test_list=TESTS),
        "correct",
        "passed",
    ),
    "plus tests fail": (
        listed("def f(x):\n    return x + x", "assert f(2) == 4", plus_test_list=TESTS),
        "wrong",
        "assertion: test 2 of 4",
    ),
    "no tests": (
        {"generation": fenced("x = 1"), "entry_point": "f"},
        "unscored",
        "the record has no tests (KeyError",
    ),
    "empty tests": (listed("x = 1"), "unscored", "the record has no tests (ValueError"),
    "broken tests": (listed("def f(x): pass", "assert f(("), "unscored", "data: SyntaxError"),
    "a test beyond the pipe": (
        listed("def f(x): pass", "f(lambda: 1)"),
        "unscored",
        "harness: test 1 of 1: a test hands",
    ),
}


@pytest.fixture(scope="module")
def honest() -> dict[str, Score]:
    return dict(zip(HONEST, grade_all([row for row, _, _ in HONEST.values()]), strict=True))


@pytest.mark.parametrize(
    ("record", "cpu"), [({}, 10.0), ({"cpu_seconds": 120}, 240.0), ({"cpu_seconds": 1}, 10.0)]
)
def test_a_row_may_need_more_time(record: Row, cpu: float) -> None:
    time = EvalPlusGrader().time(record, 2)
    assert (time.cpu, time.wall) == (cpu, 6 * cpu)


@pytest.fixture(scope="module")
def hostile() -> dict[str, Score]:
    quick = [name for name in ALL if name not in SLOW]
    rows = {name: listed(code, *TESTS) for name, code in ALL.items()}
    found = dict(zip(quick, grade_all([rows[name] for name in quick], timeout=4), strict=True))
    return found | dict(zip(SLOW, grade_all([rows[name] for name in SLOW], timeout=1), strict=True))


@pytest.mark.parametrize("name", HONEST)
def test_verdicts(honest: dict[str, Score], name: str) -> None:
    if name == "numpy":
        pytest.importorskip("numpy", reason="no numpy here: pip install 'newskills[sandbox]'")
    _, outcome, why = HONEST[name]
    score = honest[name]
    assert (score.outcome, score.why[: len(why)]) == (outcome, why)
    assert score.grader == "evalplus@5"
    correct = {"correct": True, "unscored": None}.get(outcome, False)
    assert score.fields["is_correct"] == (True if name == "plus tests fail" else correct)
    assert score.cause == {
        "cut off": "truncation", "no tests": "data", "empty tests": "data", "broken tests": "data",
        "a test beyond the pipe": "grader",
    }.get(name, None if outcome == "correct" else "model")  # fmt: skip


def test_fields(honest: dict[str, Score]) -> None:
    assert honest["right"].fields == {"completion": "def f(x):\n    return x * x", "is_correct": True}
    assert honest["plus tests pass"].fields["is_correct-plus"] is True
    assert honest["plus tests fail"].fields["is_correct-plus"] is False
    assert honest["nothing"].fields == {"completion": "", "is_correct": False}


@pytest.mark.parametrize("name", ALL)
def test_no_attack_passes(hostile: dict[str, Score], name: str) -> None:
    score = hostile[name]
    assert (score.outcome, score.cause, score.fields["is_correct"]) == ("wrong", "model", False), score.why


@pytest.mark.parametrize("name", SLOW)
def test_what_takes_too_long_is_told_so(hostile: dict[str, Score], name: str) -> None:
    assert hostile[name].why.startswith("timeout")


def test_the_attack_on_memory_sees_what_is_there() -> None:
    held = f"HELD = {WORD}.encode() + b'\\n'\n"
    assert grade_all([listed(held + PEEKS["own memory"], *TESTS)])[0].outcome == "correct"


@pytest.mark.slow
def test_what_memory_runs_out_of_is_wrong() -> None:
    row = listed(
        "def f(x):\n    a = [b'x' * (1 << 20)]\n    while True:\n        a += [bytes(a[0]) + b'y']", *TESTS
    )
    score = grade_all([row], timeout=20)[0]
    assert score.outcome == "wrong"
    assert "emory" in score.why


class Broken:
    """A sandbox that fails as its last words say."""

    def __init__(self, result: ExecutionResult | None) -> None:
        self.result = result

    async def execute(self, execution: Execution) -> ExecutionResult:
        if self.result is None:
            raise SandboxError("gone")
        return self.result

    async def delete_session(self, session_id: str) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    "result",
    [
        None,
        ExecutionResult(status="completed", stderr="Traceback\nModuleNotFoundError: No module named 'ctypes'"),
        ExecutionResult(status="completed", stdout='ready\n[{"kind":"passed","text":""}]\n'),
        ExecutionResult(status="timeout"),
        ExecutionResult(status="crashed"),
    ],
)
def test_a_sandbox_that_does_not_begin_is_no_verdict(result: ExecutionResult | None) -> None:
    async def grade() -> Score:
        return await EvalPlusGrader().grade(listed("f = abs", *TESTS), Kit(sandbox=Broken(result)))

    with pytest.raises(SandboxError):
        aio.run(grade)


def test_without_a_sandbox() -> None:
    with pytest.raises(SandboxError, match="no sandbox"):
        aio.run(lambda: EvalPlusGrader().grade(listed("f = abs", *TESTS), Kit()))


def test_settings() -> None:
    grader = make_grader("evalplus", {"timeout": 9, "evalplus": {"dataset": "mbpp"}})
    assert is_executing(grader)
    assert not is_executing(make_grader("math", {}))
    with pytest.raises(ConfigError, match="timeout"):
        make_grader("evalplus", {"timeuot": 9})


def test_metric() -> None:
    metric = make_metric("evalplus")
    metric.update([{"id": "a", "is_correct": True, "outcome": "correct"}])
    metric.update([{"id": "b", "is_correct": False, "outcome": "no_answer"}])
    metric.update([{"id": "c", "outcome": "unscored", "outcome_cause": "sandbox"}])
    found = metric.metrics()["pass@1"]
    assert found["passing_base_tests"] == 50.0
    assert "passing_plus_tests" not in found
    assert found["unscored"] == pytest.approx(100 / 3)
    ledger = metric.ledger()
    assert (ledger.correct, ledger.no_answer, ledger.unscored, ledger.causes) == (
        1,
        1,
        1,
        {"model": 1, "sandbox": 1},
    )


def test_metric_with_plus_tests() -> None:
    metric = make_metric("evalplus")
    metric.update([{"is_correct": True, "is_correct-plus": True}, {"is_correct": True, "is_correct-plus": False}])
    found = metric.metrics()
    assert found["pass@1[avg-of-2]"]["passing_base_tests"] == 100.0
    assert found["pass@1[avg-of-2]"]["passing_plus_tests"] == 50.0
    assert found["pass@2"]["passing_plus_tests"] == 100.0
    assert not any(mode.startswith("majority") for mode in found)
    wrong = metric.incorrect({"is_correct": True, "is_correct-plus": True})
    assert (wrong["is_correct"], wrong["is_correct-plus"], wrong["outcome"]) == (False, False, "no_answer")
