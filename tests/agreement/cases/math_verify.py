# SPDX-License-Identifier: Apache-2.0
"""Answers of competitions, in whole replies, as math-verify reads and compares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_GOLDS = (
    "204", "025", "-7", "\\frac{14}{3}", "2\\sqrt{2}", "\\frac{\\pi}{6}", "(3, -1)", "\\left(-\\infty, 2\\right]",
    "1 + \\sqrt{5}", "x^2 - 4x + 1", "\\{1, 2, 5\\}", "0.375", "3 - 2i", "2^{99}", "\\binom{10}{3}", "12\\%",
    "\\begin{pmatrix} 1 & 0 \\\\ 2 & 3 \\end{pmatrix}", "\\log_2 3", "1234567", "\\frac{n(n+1)}{2}",
)  # fmt: skip
_THOUGHT = "Let me count. There are 3 cases and 5 of them fall away.\n\n"


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        yield {"expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    return {
        "box": f"{_THOUGHT}So the answer is $\\boxed{{{gold}}}$.",
        "box in brackets": f"{_THOUGHT}\\[\\boxed{{{gold}}}\\]",
        "box in bold": f"{_THOUGHT}**Final Answer:** $\\boxed{{{gold}}}$",
        "box after thinking": f"<think>First I had \\boxed{{999}}.</think>\n\n**Answer**\n\n\\boxed{{{gold}}}",
        "remark after": f"{_THOUGHT}$\\boxed{{{gold}}}$\n\nLet me know if you want a second way to see it!",
        "heading": f"### Final Answer\n\n$$\\boxed{{{gold}}}$$\n\n---",
        "two boxes": f"{_THOUGHT}First try: $\\boxed{{77}}$. That was wrong.\n\n$\\boxed{{{gold}}}$",
        "named in the box": f"{_THOUGHT}$\\boxed{{k = {gold}}}$",
        "fractions large": f"{_THOUGHT}$\\boxed{{{gold.replace(_FRACTION, _LARGE)}}}$",
        "blanks": f"{_THOUGHT}$\\boxed{{ {gold} }}$",
        "final sentence": f"{_THOUGHT}The final answer is ${gold}$. I hope it is correct.",
        "box cut off": f"{_THOUGHT}So the answer is $\\boxed{{{gold}",
        "wrong": f"{_THOUGHT}So the answer is $\\boxed{{18}}$.",
        "one more": f"{_THOUGHT}So the answer is $\\boxed{{{gold} + 1}}$.",
        "twice": f"{_THOUGHT}So the answer is $\\boxed{{2 \\cdot \\left({gold}\\right)}}$.",
        "negative": f"{_THOUGHT}So the answer is $\\boxed{{-\\left({gold}\\right)}}$.",
        "two answers": f"{_THOUGHT}So the answer is $\\boxed{{{gold}, 19}}$.",
        "nothing": f"{_THOUGHT}I could not finish.",
    }


_FRACTION, _LARGE = "\\frac", "\\dfrac"


def original(folder: Path) -> Verdict:
    """Of the package; the folder is not looked at."""
    metric = import_module("math_verify")

    def verdict(row: Row, reply: Any) -> float:
        gold = metric.parse(f"${row['expected_answer']}$")
        return float(metric.verify(gold, metric.parse(reply)))

    return verdict


COMPARISON = Comparison(
    name="math-verify",
    benchmarks=("aime24", "aime25", "aime26", "amc23", "hmmt_feb25", "math-500", "minerva_math", "olympiadbench"),
    scorer="math-verify (PyPI)",
    compared=WHOLE,
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("math"),
    known={"box cut off": "the original finds a fraction in a box that never ends; ours takes it for cut off"},
)
