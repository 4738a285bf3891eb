# SPDX-License-Identifier: Apache-2.0
"""MATH (arXiv:2103.03874): answers in LaTeX that its authors take for the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import ANSWERS, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_GOLDS = (
    "4", "-3", "\\frac{1}{2}", "\\frac{3}{4}", "2\\sqrt{3}", "(1,2)", "x^2+1", "0.5", "90", "\\frac{\\pi}{3}",
    "10\\%", "[0,1)", "1000", "3+4i", "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\text{east}", "y=2x+3",
    "-\\frac{7}{9}", "\\sqrt{5}", "16",
)  # fmt: skip


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        yield {"expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    answers = {
        "the same": gold,
        "dfrac": gold.replace("\\frac", "\\dfrac"),
        "tfrac": gold.replace("\\frac", "\\tfrac"),
        "left and right": gold.replace("(", "\\left(").replace(")", "\\right)"),
        "thin blanks": gold.replace(",", ",\\!"),
        "blanks": gold.replace("+", " + ").replace(",", ", "),
        "dollars": f"\\${gold}",
        "degrees": f"{gold}^\\circ",
        "short fraction": gold.replace("\\frac{1}{2}", "\\frac12").replace("\\frac{3}{4}", "3/4"),
        "half": "\\frac{1}{2}",
        "a half": "0.5",
        "short root": gold.replace("\\sqrt{3}", "\\sqrt3").replace("\\sqrt{5}", "\\sqrt5"),
        "named": f"k={gold}" if "=" not in gold else gold,
        "unit": f"{gold}\\text{{ cm}}",
        "plus one": f"{gold}+1",
        "negative": f"-{gold}",
        "another": "17",
        "nothing": "",
        "twice": f"2({gold})",
    }
    return {form: f"So the answer is $\\boxed{{{answer}}}$." for form, answer in answers.items()}


def original(folder: Path) -> Verdict:
    same = loaded(folder / "modeling" / "math_equivalence.py").is_equiv

    def verdict(row: Row, reply: Any) -> float:
        answer = str(reply).removeprefix("So the answer is $\\boxed{").removesuffix("}$.")
        return float(same(answer, row["expected_answer"]))

    return verdict


COMPARISON = Comparison(
    name="hendrycks_math",
    benchmarks=("hendrycks_math",),
    scorer="MATH `math_equivalence.py`",
    compared=ANSWERS,
    repository="hendrycks/math",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("math"),
    known={
        "degrees": "the original drops a degree sign anywhere; to ours, those of a root, pair or matrix are no number",
        "dollars": "the original drops a dollar sign anywhere; a pair, interval or matrix is no amount of money",
        "unit": "the original drops all text after the value; a word or a matrix has no unit to ours",
        "named": "the original drops a name of one or two letters before `=`, ours before formulas only, not words",
        "negative": "the original drops what stands before `=`, so that `-y = 2x + 3` is `y = 2x + 3`",
    },
)
