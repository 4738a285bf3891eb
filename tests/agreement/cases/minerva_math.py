# SPDX-License-Identifier: Apache-2.0
"""Minerva's MATH: what stands behind "The final answer is", normalised (arXiv:2206.14858), compared by SymPy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_EXPRESSIONS = (
    "16", "-\\frac{2}{3}", "2\\sqrt{3}", "\\frac{\\pi}{4}", "0.125", "\\sqrt{2}+1", "x^2-3x+2", "1200", "3^{5}",
    "\\log_2 8", "\\frac{1+\\sqrt{5}}{2}", "\\binom{6}{2}", "7!", "e^{2}", "2n+1", "\\frac{x}{x+1}",
)  # fmt: skip
_BRACKETED = ("[2,5)", "(1,-3)", "\\{1,2\\}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}")
_OTHERS = ("x=2y+1", "3,5", "\\text{even}", "C", "1011_2")
_WORKED = "We add both sides, which gives 7 and then 12.\n"


def rows() -> Iterator[Row]:
    for task, golds in (("expression", _EXPRESSIONS), ("brackets", _BRACKETED), ("anything else", _OTHERS)):
        for gold in golds:
            yield {"task": task, "expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    answers = {
        "dollars": f"${gold}$",
        "bare": gold,
        "box": f"$\\boxed{{{gold}}}$",
        "named": f"$N = {gold}$",
        "unit": f"${gold}\\text{{ cm}}$",
        "plain unit": f"${gold}$ cm",
        "large fractions": f"${gold.replace(_FRACTION, _LARGE)}$",
        "turned": f"$0+{gold}$",
        "doubled and halved": f"$\\frac{{2({gold})}}{{2}}$",
        "one more": f"${gold}+1$",
        "negative": f"$-({gold})$",
        "another": "$29$",
    }
    replies = {
        name: f"{_WORKED}Final Answer: The final answer is {text}. I hope it is correct."
        for name, text in answers.items()
    }
    return {
        **replies,
        "next problem": f"{replies['dollars']}\n\nProblem:\nWhat is 1+1?\n\nSolution:\n"
        "Final Answer: The final answer is $2$.",
        "nothing": f"{_WORKED}I cannot see how to go on.",
    }


_FRACTION, _LARGE = "\\frac", "\\dfrac"


def original(folder: Path) -> Verdict:
    """Needs SymPy, math-verify and antlr4-python3-runtime 4.11; `datasets`, which it only imports, is left out."""
    sys.path.insert(0, str(folder))
    datasets: Any = ModuleType("datasets")
    datasets.Dataset = object
    sys.modules["datasets"] = datasets
    scorer: Any = importlib.import_module("lm_eval.tasks.minerva_math.utils")

    def verdict(row: Row, reply: Any) -> float:
        gold = scorer.normalize_final_answer(row["expected_answer"])
        answer = scorer.normalize_final_answer(scorer.get_unnormalized_answer(reply))
        return float(scorer.is_equiv(answer, gold))

    return verdict


COMPARISON = Comparison(
    name="minerva-math",
    benchmarks=("hendrycks_math",),
    scorer="lm-evaluation-harness, `minerva_math/utils.py`",
    compared=WHOLE,
    repository="EleutherAI/lm-evaluation-harness",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("math"),
    known={
        **dict.fromkeys(
            (
                "brackets/dollars",
                "brackets/bare",
                "brackets/box",
                "brackets/named",
                "brackets/unit",
                "brackets/plain unit",
                "brackets/large fractions",
                "brackets/next problem",
                "brackets/doubled and halved",
            ),
            "the original's reader of LaTeX knows no intervals, pairs, sets, matrices: not even the same text is equal",
        ),
        **dict.fromkeys(
            (
                "anything else/named",
                "anything else/unit",
                "anything else/turned",
                "anything else/doubled and halved",
                "anything else/negative",
                "anything else/one more",
            ),
            "the original takes a word for a product of letters, and no notice of what stands before `=`, behind a "
            "comma or a subscript",
        ),
    },
)
