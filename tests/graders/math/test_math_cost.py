# SPDX-License-Identifier: Apache-2.0
"""What a hostile answer may cost: CPU time as the worker's own clock counts it, not wall time."""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.night import NIGHTLY

from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.records import Score
from newskills.graders.math import equal
from newskills.graders.math.grader import MathGrader
from newskills_math import verdict
from newskills_math.values import symbolic
from newskills_math.values.deadline import OutOfTime, for_free, is_limited, run_limited

MOST = 2.0
"""CPU seconds for one answer. A worker that needs more is killed, and its answer a Failure. More than twice what all
steps together have, so that the rest (imports, the last tick) may take as long again on a slow machine."""


def matrix(size: int, cell: Callable[[int, int], str], name: str = "pmatrix") -> str:
    rows = r"\\".join("&".join(cell(i, j) for j in range(size)) for i in range(size))
    return rf"\begin{{{name}}}{rows}\end{{{name}}}"


def symbol(i: int, j: int) -> str:
    return f"a_{{{i}{j}}}"


def power(i: int, j: int) -> str:
    return f"x^{{{i}}}y^{{{j}}}+{i * j + 1}"


def radical(i: int, j: int) -> str:
    return rf"\sqrt{{{6 * i + j + 2}}}"


HOSTILE = {
    "determinant": r"\det" + matrix(6, symbol),
    "determinant in brackets": r"\det\left(" + matrix(7, power) + r"\right)",
    "determinant of radicals": r"\det" + matrix(6, radical),
    "determinant in bars": matrix(12, symbol, "vmatrix"),
    "determinant beyond reading": r"\det" + matrix(40, symbol),
    "permanent": r"\operatorname{per}" + matrix(9, symbol),
    "adjugate": r"\operatorname{adj}" + matrix(6, symbol),
    "inverse": matrix(6, power) + "^{-1}",
    "power of a matrix": matrix(5, symbol) + "^{40}",
    "product of matrices": r"\cdot".join([matrix(6, power)] * 8),
    "norm": r"\|" + matrix(8, symbol) + r"\|",
    "expansion": r"\int (x+y+z)^{40} dx",
    "rational integral": r"\int \frac{1}{x^{15}+1} dx",
    "definite integral": r"\int_0^1 \frac{1}{x^{15}+1} dx",
    "integral without a formula": r"\int \sqrt{\sin x + \cos(x^2)} e^{\tan x} dx",
    "threefold integral": r"\int\int\int e^{-x^2 y z} \sin(xyz) dx dy dz",
    "many integrals": ",".join(rf"\int_0^{{{i}}} x^2 dx" for i in range(30)),
    "limit": r"\lim_{x\to\infty} \left(\frac{x^{x}}{\Gamma(x)}\right)^{\frac1x}",
    "limit of a sum": r"\lim_{n\to\infty}\frac{1}{n}\sum_{k=1}^{n}\sqrt{\frac{k}{n}\sin\frac{k}{n}}",
    "derivatives": r"\frac{d}{dx}" * 12 + r"\sin(\tan(e^{x^x}))",
    "large sum": r"\sum_{k=1}^{10^{9}} \lfloor \sqrt{k} \rfloor",
    "sum without a formula": r"\sum_{k=1}^{\infty} \frac{\sin k}{k^3 \binom{2k}{k}}",
    "sums of sums": r"\sum_{i=1}^{n}\sum_{j=1}^{i}\sum_{k=1}^{j} \frac{ijk}{i+j+k}",
    "large product": r"\prod_{k=1}^{100000} \frac{k+1}{k^2} + \int_0^1 x dx",
    "nested radicals": r"\int_0^1 " + r"\sqrt{1+" * 12 + "x" + "}" * 12 + "dx",
    "deep radicals": r"\sqrt{2+" * 30 + "2" + "}" * 30,
    "many factors": r"\int_0^1 x dx + " + "*".join(f"(x+{i} y+{i * i} z)" for i in range(1, 30)),
    "a number to factor": r"\lim_{x \to 0} x + \sqrt[3]{" + str((10**40 + 121) * (10**41 + 109)) + "}",
    "many terms": r"\int_0^1 x dx" + r"+\sin(x)" * 400,
    "absolute values": r"\int_0^1 x dx + " + "+".join(f"|x-{i}|" for i in range(30)),
    "powers of sines": r"\int_0^1 t dt + (\sin x + \cos y)^{200}",
    "intervals": r" \cup ".join(rf"(\int_0^{{{i}}} x dx,{i + 99})" for i in range(12)),
    "chain of sums": "x=" + "=".join(rf"\sum_{{n={i}}}^{{\infty}} \frac{{\sin n}}{{n^2}}" for i in range(1, 30)),
    "list of sums": ",".join(rf"\sum_{{n=1}}^{{\infty}} \frac{{1}}{{n^2+{i}}}" for i in range(50)),
    "union of sums": r"\cup".join(rf"(\sum_{{n=1}}^{{\infty}} \frac{{1}}{{n^2+{i}}},{i + 9}]" for i in range(50)),
    "alternatives of sums": " or ".join(rf"\sum_{{n=1}}^{{\infty}} \frac{{1}}{{n^2+{i}}}" for i in range(30)),
}


@pytest.mark.slow
def test_no_answer_costs_more_than_two_seconds_and_beside_a_plain_gold_none_is_lost() -> None:
    rows = [
        {"predicted_answer": answer, "expected_answer": gold}
        for index, answer in enumerate([*HOSTILE.values()][:: 1 if NIGHTLY else 2])
        for gold in (["5"] if index % 3 else ["5", f"{answer}+1"])
    ]
    config = {"name": "math", "config": {}}
    options = PoolOptions(processes=1, cpu_seconds=MOST)
    with WorkerPool("newskills.graders.worker:make", config, result_type=Score, options=options) as pool:
        scores = [pool.submit(row) for row in rows]
        results = [score.result(timeout=600) for score in scores]
    for row, result in zip(rows, results, strict=True):
        assert isinstance(result, Score), (row, result)
        assert result.outcome != "correct", (row, result)
        if row["expected_answer"] == "5":
            assert result.outcome == "wrong", (row, result)


@pytest.mark.slow
def test_one_hostile_answer_does_not_fail_the_command(tmp_path: Path) -> None:
    rows = [{"predicted_answer": HOSTILE[name], "expected_answer": "5"} for name in ("determinant", "expansion")]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    argv = [sys.executable, "-m", "newskills", "grade", "--grader=math", f"--input_files={file}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("pred", "gold", "correct"),
    [
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "-2", True),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "2", False),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", False),
        (r"\det\begin{pmatrix}a&b\\c&d\end{pmatrix}", "ad-bc", True),
        (r"\det\left(\begin{bmatrix}a&b\\c&d\end{bmatrix}\right)", "ad+bc", False),
        (r"\left|\begin{matrix}x&1\\1&x\end{matrix}\right|", "x^2-1", True),
        (r"\begin{vmatrix}x&1\\1&x\end{vmatrix}=0", "x^2-1=0", True),
        (r"\det" + matrix(6, symbol), r"\det" + matrix(6, lambda i, j: symbol(j, i)), True),
        (r"\det" + matrix(6, symbol), r"\det" + matrix(6, lambda i, j: symbol(5 - i, j)), False),
        (r"\det" + matrix(3, radical), r"0", False),
        (r"\begin{vmatrix}1&2\\2&4\end{vmatrix}", "0", True),
        (r"\begin{vmatrix}1&2&3\\2&4&5\end{vmatrix}", "0", False),
    ],
)
def test_determinants_are_compared_by_value(pred: str, gold: str, correct: bool) -> None:
    assert equal(pred, gold)[0] is correct
    assert equal(gold, pred)[0] is correct


def test_an_integral_that_is_quick_is_still_worked_out() -> None:
    assert equal(r"\int_0^1 x^2\,dx", r"\frac{1}{3}") == (True, "math-verify")


def test_a_gold_that_takes_too_long_is_undecided_not_wrong() -> None:
    assert equal("x+1", HOSTILE["rational integral"]) == (None, "no time left in step math-verify")


SUMS = ",".join(rf"\sum_{{n=1}}^{{\infty}} \frac{{1}}{{n^2+{i}}}" for i in range(50))


@pytest.fixture
def budgets(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The CPU seconds of each budget that was begun, not within another."""
    begun: list[float] = []

    def counted(work: Callable[[], verdict.Verdict], seconds: float) -> verdict.Verdict:
        if not is_limited():
            begun.append(seconds)
        return run_limited(work, seconds)

    monkeypatch.setattr(verdict, "run_limited", counted)
    return begun


def test_all_steps_share_one_budget(budgets: list[float]) -> None:
    """Our own reader, the symbolic step, and both again for the other reading of a comma."""
    assert equal("2,5", r"\int_0^5 \frac{1}{2} dx") == (True, "decimal comma")
    assert budgets == [verdict.CPU_SECONDS]


def test_all_accepted_answers_share_one_budget(budgets: list[float]) -> None:
    golds = [r"\int_0^1 x^2 dx", r"\int_0^1 x dx", r"\int_0^1 2x dx"]
    score = MathGrader().grade(
        {"predicted_answer": "1", "expected_answer": golds[0], "accepted_answers": golds[1:]}
    )
    assert (score.outcome, budgets) == ("correct", [verdict.CPU_SECONDS])


def test_plain_answers_need_no_budget(budgets: list[float]) -> None:
    assert equal("12", "13")[0] is False
    assert equal(r"\frac12", "0.5")[0] is True
    assert budgets == []


def test_a_step_of_our_own_says_that_it_has_no_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "CPU_SECONDS", 0.05)
    assert equal(SUMS, SUMS.replace("n^2", "2n^2")) == (None, "no time left in step value")
    assert equal(SUMS, ",".join(map(str, range(50)))) == (False, "no time left in step value")


def test_a_call_within_another_draws_on_its_time() -> None:
    def spin() -> None:
        while True:
            sum(range(1_000))

    with pytest.raises(OutOfTime):
        run_limited(lambda: run_limited(spin, 3_600.0), 0.05)
    assert not is_limited()


def test_what_is_done_once_for_all_answers_costs_none_of_them() -> None:
    def spin() -> str:
        until = time.process_time() + 0.4
        while time.process_time() < until:
            sum(range(1_000))
        return "done"

    assert run_limited(lambda: for_free(spin), 0.1) == "done"
    with pytest.raises(OutOfTime):
        run_limited(spin, 0.1)


def test_a_call_is_ended_by_its_own_cpu_time_even_where_exceptions_are_swallowed() -> None:
    def stubborn() -> None:
        while True:
            try:
                sum(range(10_000))
            except Exception:
                continue

    with pytest.raises(OutOfTime):
        run_limited(stubborn, 0.05)
    assert run_limited(lambda: 7, 5.0) == 7
    assert gc.isenabled()


def test_what_is_too_long_is_told() -> None:
    assert symbolic.decide_symbolically("x" * 5_000, "5", 15) == (False, "too big to compare symbolically")
    assert symbolic.decide_symbolically("5", "x" * 5_000, 15) == (None, "too big to compare symbolically")


def test_what_the_first_pair_of_a_kind_imports_is_not_its_cost(tmp_path: Path) -> None:
    """An import that is much dearer than an answer may be, in the middle of one."""
    (tmp_path / "dear.py").write_text(
        "import time\nuntil = time.process_time() + 1.5\nwhile time.process_time() < until: sum(range(1000))\n"
    )

    def importing() -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            return str(importlib.import_module("dear").__name__)

    assert run_limited(importing, 0.3) == "dear"
