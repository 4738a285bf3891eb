# SPDX-License-Identifier: Apache-2.0
"""PHYBench (arXiv:2504.16074): whether an expression is the expected one, by its authors' EED (a score of 100).

EED also gives a share of 60 points to wrong expressions whose tree is near; PHYBench's accuracy does not count it.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import ANSWERS, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_BEFORE, _AFTER = "So the result is $\\boxed{", "}$."
# ruff: noqa: E501
_GOLDS: tuple[tuple[str, str, str, str, str], ...] = (
    ("2 m g+4\\frac{m v_0^2}{l}", "\\frac{2 m g l+4 m v_0^2}{l}", "2m(g+\\frac{2v_0^2}{l})", "2 m g+2\\frac{m v_0^2}{l}", "2 m g-4\\frac{m v_0^2}{l}"),
    ("\\sqrt{\\frac{2 g h}{1+\\mu}}", "(\\frac{2 g h}{1+\\mu})^{1/2}", "\\sqrt{2 g h}/\\sqrt{1+\\mu}", "\\sqrt{\\frac{g h}{1+\\mu}}", "\\sqrt{\\frac{2 g h}{1-\\mu}}"),
    ("\\frac{m_1-m_2}{m_1+m_2} g", "g\\frac{m_1-m_2}{m_2+m_1}", "\\frac{g m_1-g m_2}{m_1+m_2}", "\\frac{m_2-m_1}{m_1+m_2} g", "\\frac{m_1}{m_1+m_2} g"),
    ("\\frac{q^2}{4\\pi\\epsilon_0 r^2}", "\\frac{1}{4\\pi\\epsilon_0}\\frac{q^2}{r^2}", "q^2(4\\pi\\epsilon_0 r^2)^{-1}", "\\frac{q^2}{4\\pi\\epsilon_0 r}", "\\frac{q}{4\\pi\\epsilon_0 r^2}"),
    ("2\\pi\\sqrt{\\frac{l}{g}}", "2\\pi\\frac{\\sqrt{l}}{\\sqrt{g}}", "\\sqrt{\\frac{4\\pi^2 l}{g}}", "2\\pi\\sqrt{\\frac{g}{l}}", "\\pi\\sqrt{\\frac{l}{g}}"),
    ("\\frac{1}{2} k x^2", "\\frac{k x^2}{2}", "0.5 k x^2", "k x^2", "\\frac{1}{2} k x"),
    ("m g \\sin\\theta-\\mu m g\\cos\\theta", "m g(\\sin\\theta-\\mu\\cos\\theta)", "-\\mu m g\\cos\\theta+m g\\sin\\theta", "m g\\cos\\theta-\\mu m g\\sin\\theta", "m g\\sin\\theta+\\mu m g\\cos\\theta"),
    ("\\frac{\\mu_0 I}{2\\pi r}", "\\frac{\\mu_0}{2\\pi}\\frac{I}{r}", "\\frac{I\\mu_0}{2 r\\pi}", "\\frac{\\mu_0 I}{4\\pi r}", "\\frac{\\mu_0 I}{2\\pi r^2}"),
    ("n R T\\ln\\frac{V_2}{V_1}", "n R T(\\ln V_2-\\ln V_1)", "-n R T\\ln\\frac{V_1}{V_2}", "n R T\\ln\\frac{V_1}{V_2}", "R T\\ln\\frac{V_2}{V_1}"),
    ("\\frac{3}{5}\\frac{G M^2}{R}", "\\frac{3 G M^2}{5 R}", "0.6\\frac{G M^2}{R}", "\\frac{3}{5}\\frac{G M}{R}", "\\frac{2}{5}\\frac{G M^2}{R}"),
    ("v_0 t-\\frac{1}{2} g t^2", "t(v_0-\\frac{g t}{2})", "-\\frac{g t^2}{2}+v_0 t", "v_0 t+\\frac{1}{2} g t^2", "v_0 t-g t^2"),
    ("\\frac{a}{b+c}", "a(b+c)^{-1}", "\\frac{2a}{2b+2c}", "\\frac{a}{b}+c", "\\frac{a}{b-c}"),
    ("\\omega^2 r", "r\\omega^2", "\\frac{\\omega^2 r^2}{r}", "\\omega r^2", "\\omega^2"),
    ("\\frac{h c}{\\lambda}-W", "\\frac{h c-W\\lambda}{\\lambda}", "h\\frac{c}{\\lambda}-W", "\\frac{h c}{\\lambda}+W", "\\frac{h\\lambda}{c}-W"),
    ("A e^{-\\gamma t}\\cos(\\omega t)", "A\\cos(\\omega t)e^{-\\gamma t}", "\\frac{A\\cos(\\omega t)}{e^{\\gamma t}}", "A e^{-\\gamma t}\\sin(\\omega t)", "A e^{\\gamma t}\\cos(\\omega t)"),
    ("\\frac{7}{5} m R^2", "1.4 m R^2", "\\frac{2}{5} m R^2+m R^2", "\\frac{5}{7} m R^2", "\\frac{7}{5} m R"),
    ("\\frac{x^2-1}{2}", "\\frac{(x-1)(x+1)}{2}", "\\frac{x^2}{2}-\\frac{1}{2}", "\\frac{x^2+1}{2}", "x^2-1"),
    ("3 k_B T", "3T k_B", "\\frac{6 k_B T}{2}", "\\frac{3}{2} k_B T", "3 k_B T^2"),
    ("\\tan\\alpha", "\\frac{\\sin\\alpha}{\\cos\\alpha}", "\\frac{1}{\\cot\\alpha}", "\\sin\\alpha", "\\tan\\beta"),
    ("\\sqrt{v_x^2+v_y^2}", "(v_x^2+v_y^2)^{0.5}", "\\sqrt{v_y^2+v_x^2}", "v_x+v_y", "\\sqrt{v_x^2-v_y^2}"),
    ("\\frac{\\rho V g}{S}", "\\rho g\\frac{V}{S}", "\\frac{g V\\rho}{S}", "\\frac{\\rho V}{S}", "\\rho V g S"),
    ("\\frac{\\pi^2\\hbar^2}{2 m L^2}", "\\frac{1}{2m}(\\frac{\\pi\\hbar}{L})^2", "\\frac{\\pi^2}{2}\\frac{\\hbar^2}{m L^2}", "\\frac{\\pi^2\\hbar^2}{m L^2}", "\\frac{\\pi\\hbar^2}{2 m L^2}"),
)  # fmt: skip
"""(expected, the same in two other ways, two wrong ones)."""


def rows() -> Iterator[Row]:
    for gold, *others in _GOLDS:
        yield {"expected_answer": gold, "others": others}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    same, again, wrong, another = row["others"]
    answers = {
        "the same": gold,
        "rewritten": same,
        "rewritten again": again,
        "wrong": wrong,
        "wrong again": another,
        "named": f"F={gold}",
        "named wrong": f"F={wrong}",
        "chain": f"F={same}={gold}",
        "dfrac": gold.replace("\\frac", "\\dfrac"),
        "left and right": gold.replace("(", "\\left(").replace(")", "\\right)"),
        "in brackets": f"({gold})",
        "full stop": f"{gold}.",
        "doubled": f"2({gold})",
        "negative": f"-({gold})",
        "plus one": f"{gold}+1",
        "half a bracket": f"({gold}",
    }
    return {form: f"{_BEFORE}{answer}{_AFTER}" for form, answer in answers.items()}


def original(folder: Path) -> Verdict:
    """Its limits of time, which are signals, are left out."""
    unlimited = types.SimpleNamespace(timeout=lambda *_, **__: lambda function: function)
    sys.modules.setdefault("timeout_decorator", unlimited)
    distance = loaded(folder / "EED" / "EED.py").EED

    def verdict(row: Row, reply: Any) -> float:
        answer = str(reply).removeprefix(_BEFORE).removesuffix(_AFTER)
        return float(distance(row["expected_answer"], answer)[0] == 100)

    return verdict


COMPARISON = Comparison(
    name="phybench",
    benchmarks=("phybench",),
    scorer="PHYBench `EED.py`, a score of 100",
    compared=ANSWERS,
    repository="phybench-official/phybench",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("math"),
    known={
        "half a bracket": "the original reads nothing with a bracket that lacks its other half; to ours it is a slip",
        "rewritten": "the original does not take a power of 0.5 for a root",
        "rewritten again": "the original does not turn a logarithm's sign into its inverse",
        "chain": "more than three times the length of the expected answer is wrong to the original",
        "left and right": "the original takes `\\left` for `\\le`, and reads what follows",
    },
)
