# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graders.math.cases import pairs

from newskills.graders.math import equal
from newskills_math.values.equal import Options

EQUAL = pairs("equal_cases.txt")
DIFFERENT = pairs("different_cases.txt")


def test_the_tables_are_large() -> None:
    assert len(EQUAL) >= 450
    assert len(DIFFERENT) >= 250


@pytest.mark.parametrize(("pred", "gold"), EQUAL)
def test_same_answers(pred: str, gold: str) -> None:
    verdict, why = equal(pred, gold)
    assert verdict is True, why


@pytest.mark.parametrize(("pred", "gold"), DIFFERENT)
def test_different_answers(pred: str, gold: str) -> None:
    verdict, why = equal(pred, gold)
    assert verdict is False, why


def test_nearly_all_is_decided_without_the_library() -> None:
    steps = [equal(pred, gold)[1] for pred, gold in EQUAL + DIFFERENT]
    assert sum("math-verify" in step for step in steps) <= 0.03 * len(steps)


@pytest.mark.parametrize(
    ("pred", "gold", "step"),
    [
        ("42", "42.0", "exact"),
        ("x", "x", "identical"),
        (r"\dfrac{x}{2}", r"\frac{x}{2}", "normalised"),
        ("(C)", "C", "option"),
        ("yes", "Yes", "words"),
        (r"\sqrt{8}", r"2\sqrt{2}", "value"),
        (r"\int_0^1 x\,dx", r"\frac{1}{2}", "math-verify"),
    ],
)
def test_the_step_that_decides_is_told(pred: str, gold: str, step: str) -> None:
    assert equal(pred, gold) == (True, step)


def test_precision_is_an_option() -> None:
    assert equal("3.1415927", r"\pi", Options(digits=15))[0] is True
    assert equal("3.14159", r"\pi", Options(digits=15))[0] is False
    assert equal("3.14159", r"\pi", Options(digits=6))[0] is True


HOSTILE = [
    "10^10^10^10",
    "((((9!)!)!)!)!",
    "99999!",
    "{" * 100_000,
    "(" * 100_000 + ")" * 100_000,
    r"\frac{" * 5_000 + "1",
    "9" * 1_000_000,
    "1" * 4_500,
    "1+" * 100_000 + "1",
    r"\sqrt{" * 3_000 + "2" + "}" * 3_000,
    "^".join(["2"] * 30),
    r"\binom{10^9}{5\cdot10^8}",
    r"\sum_{k=1}^{10^9} k",
    r"\sum_{k=1}^{2000}\sum_{j=1}^{2000}\sum_{l=1}^{2000} kjl",
    r"\prod_{k=1}^{1000} k^{k^k}",
    r"\sin(10^{10^{10}})",
    r"\lfloor 10^{10^{10}} \rfloor",
    r"\gcd(10^{10^5},7^{10^5})",
    "1e999999",
    "2^{2^{100}}",
    "1/" * 2_000 + "1",
    "9^" * 500 + "9",
    "a," * 5_000 + "a",
    ",".join(f"({i},{i})" for i in range(300)),
    r" \pm ".join(["1"] * 15),
    "x^{1000000}",
    "(x+y+z)^{10^{10}}",
    "1,000" + ",000" * 3_000,
    "|" * 1_000,
    "-" * 5_000 + "1",
    "f(" * 1_000 + "x",
    "²" * 5_000,
    "\ud800",
    "\x00" * 50,
]
GOLDS = [
    "5",
    r"\frac{\sqrt2}{2}",
    "x^2+1",
    "(1,2)",
    r"\{1,2\}",
    "x>3",
    r"\text{yes}",
    r"(-\infty,2)\cup(3,5)",
    "52_8",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_answers_are_wrong_and_quick(text: str) -> None:
    began = time.process_time()
    assert {equal(text, gold)[0] for gold in GOLDS} <= {False}
    assert time.process_time() - began < 10


AUDITED = r"""
import sys
from newskills.graders.math import equal
equal("\\int_0^1 x dx", "\\frac{1}{2}")  # imports what is imported late
def watch(event, args):
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect"):
        sys.exit(f"{event} {args}")
    if event == "compile" and "canary" in str(args[0]):
        sys.exit(f"{event} {args}")
sys.addaudithook(watch)
attacks = ["__import__('canary').system('id')", "eval('canary')", "canary.__class__.__base__", "open('canary','w')",
           "\\text{__import__('canary')}", "lambda: canary", "f'{canary}'", "\\int __import__('canary') dx",
           "\\lim_{x \\to canary()} x", "1 + canary(2)", "\\frac{canary.x}{2}"]
for attack in attacks:
    for other in ["5", "x+1", "\\text{yes}", "(1,2)", "\\int x dx", "\\lim_{x\\to 0} x", attack[::-1]]:
        assert equal(attack, other)[0] is not True
        equal(other, attack)
print("safe")
"""


def test_nothing_in_an_answer_is_executed() -> None:
    """The interpreter's own audit: no attack is ever compiled, nothing is started."""
    done = subprocess.run(
        [sys.executable, "-c", AUDITED], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "safe", done.stderr


# fmt: off
_PIECES = st.sampled_from(
    [
        r"1",
        r"2",
        r"0.5",
        r"x",
        r"y",
        r"n",
        r"\pi",
        r"e",
        r"i",
        r"\frac",
        r"\sqrt",
        r"{",
        r"}",
        r"(",
        r")",
        r"[",
        r"]",
        r"\{",
        r"\}",
        r"+",
        r"-",
        r"*",
        r"/",
        r"^",
        r"_",
        r"=",
        r"<",
        r"\le",
        r",",
        r";",
        r":",
        r"!",
        r"|",
        r"\cup",
        r"\pm",
        r"\%",
        r"^\circ",
        r"\text{cm}",
        r"\text{",
        r"and",
        r"}",
        r"\left",
        r"\right",
        r"\begin{pmatrix}",
        r"\end{pmatrix}",
        r"&",
        r"\\",
        r"\infty",
        r"\sin",
        r"\ln",
        r"\log",
        r"_2",
        r"\binom",
        r"\lfloor",
        r"\rfloor",
        r"\in",
        r"\mathbb{R}",
        r"$",
        r".",
        r"'",
        r"\overline",
    ]
)
# fmt: on


@settings(max_examples=400)
@given(st.lists(_PIECES, max_size=14).map("".join), st.lists(_PIECES, max_size=8).map("".join))
def test_any_text_gets_a_verdict(pred: str, gold: str) -> None:
    verdict, why = equal(pred, gold)
    assert verdict in (True, False, None)
    assert why


@settings(max_examples=200)
@given(st.text(max_size=40))
def test_any_text_is_itself(text: str) -> None:
    assert equal(text, text)[0] is True


@settings(max_examples=200)
@given(st.integers(), st.integers())
def test_integers_are_compared_exactly(a: int, b: int) -> None:
    assert equal(str(a), str(b))[0] is (a == b)
    assert equal(f"{a:,}", str(a))[0] is True
    assert (
        equal(
            rf"\frac{{{a}}}{{{b or 1}}}",
            f"{2 * a}/{2 * (b or 1)}" if (b or 1) > 0 else f"{-2 * a}/{-2 * (b or 1)}",
        )[0]
        is True
    )


@settings(max_examples=100)
@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_radicals_are_compared_by_value(a: int, b: int, c: int) -> None:
    assert equal(rf"{a}\sqrt{{{b}}}", rf"\sqrt{{{a * a * b}}}")[0] is True
    assert equal(rf"{a}\sqrt{{{b}}}", rf"\sqrt{{{a * a * b + c}}}")[0] is False
    assert equal(rf"\frac{{{a}}}{{\sqrt{{{b}}}}}", rf"\frac{{{a}\sqrt{{{b}}}}}{{{b}}}")[0] is True


@settings(max_examples=100)
@given(st.lists(st.integers(-99, 99), min_size=2, max_size=6, unique=True))
def test_order_counts_in_tuples_only(items: list[int]) -> None:
    shuffled = items[::-1]
    text, other = ", ".join(map(str, items)), ", ".join(map(str, shuffled))
    assert equal(other, text)[0] is True
    assert equal(rf"\{{{other}\}}", text)[0] is True
    assert equal(f"({other})", f"({text})")[0] is False
    assert equal(text + ", 100", text)[0] is False


@pytest.mark.parametrize(
    "tower", ["2^{2^{200}}", "10^{10^{100}}", "3^{3^{3^{3}}}", "9^{9^{9^{9}}}", "88888888888!"]
)
def test_towers_are_decided_without_computing_them(tower: str) -> None:
    assert equal(f"{tower}+1", tower)[0] is False
    assert equal(f"1+{tower}", f"{tower}+1")[0] is True
    assert equal(rf"\frac{{2\cdot {tower}}}{{2}}", tower)[0] is True


@settings(max_examples=60)
@given(st.integers(2, 30), st.integers(5_000, 10**9), st.integers(-3, 3))
def test_huge_powers_are_compared_exactly(base: int, power: int, more: int) -> None:
    assert equal(f"{base}^{{{power}}}+{more}", f"{base}\\cdot {base}^{{{power - 1}}}")[0] is (more == 0)


@pytest.mark.parametrize(
    ("pred", "gold", "same"),
    [
        (r"\vec{a}\times\vec{b}", r"\vec{a}\times\vec{b}", True),
        (r"-\vec{b}\times\vec{a}", r"\vec{a}\times\vec{b}", True),
        (r"\vec{b}\times\vec{a}", r"\vec{a}\times\vec{b}", False),
        ("C, A, B", "C, A, B", True),
        ("A, B, C", "C, A, B", False),
        ("A, B", "B, A", True),
        ("(AB)^T", "B^T A^T", True),
        ("(AB)^T", "A^T B^T", False),
        ("AB^{-1}", "B^{-1}A", False),
        ("50%", "50", True),
        ("x = 5", "5", True),
        ("x = 5", "y = 5", False),
    ],
)
def test_where_the_order_of_letters_counts(pred: str, gold: str, same: bool) -> None:
    assert equal(pred, gold)[0] is same
