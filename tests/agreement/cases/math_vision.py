# SPDX-License-Identifier: Apache-2.0
"""MATH-Vision (arXiv:2402.14804): an option by its letter or its text, or a value to two places."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from newskills.base.records import Row
from newskills.benchmarks.vlm.math_vision import BENCHMARK, row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "B": ("10", "12", "14", "16", "18"),
    "D": ("$\\frac{1}{2}$", "$\\frac{2}{3}$", "$\\frac{3}{4}$", "$\\frac{4}{5}$", "1"),
    "A": ("Ann", "Bob", "Cid", "Dora", "Ella"),
    "E": ("A", "B", "C", "D", "E"),
    "C": ("$2 \\sqrt{3}$", "$\\sqrt{12}+1$", "$4$", "$\\pi$", "$6$"),
}
_VALUES = ("8", "30", "8.57", "0.5", "-3", "\\frac{7}{2}", "\\sqrt{2}", "2\\pi", "1250", "17", "(3,4)")


def rows() -> Iterator[Row]:
    for letter, options in _OPTIONS.items():
        yield {"task": "options", "options": list(options), "answer": letter}
    for value in _VALUES:
        yield {"task": "value", "options": [], "answer": value}


def forms(row_of_case: Row) -> Mapping[str, str]:
    gold, options = row_of_case["answer"], row_of_case["options"]
    if options:
        at = "ABCDE".index(gold)
        other, text, wrong = "ABCDE"[at - 1], options[at].strip("$"), options[at - 1].strip("$")
        return {
            "box": f"So \\boxed{{{gold}}}",
            "box in brackets": f"So \\boxed{{({gold})}}",
            "box of a text": f"So \\boxed{{\\text{{{gold}}}}}",
            "small box": f"So \\boxed{{{gold.lower()}}}",
            "box of the option": f"So \\boxed{{{text}}}",
            "box of letter and option": f"So \\boxed{{{gold}. {text}}}",
            "two boxes": f"First \\boxed{{{other}}}, then \\boxed{{{gold}}}",
            "sentence": f"The answer is {gold}",
            "sentence, brackets": f"The answer is ({gold}).",
            "end": f"It must be {gold}.",
            "another box": f"So \\boxed{{{other}}}",
            "box of another option": f"So \\boxed{{{wrong}}}",
            "another sentence": f"The answer is {other}",
            "no letter": "I cannot see the picture.",
        }
    return {
        "box": f"So \\boxed{{{gold}}}",
        "equation": f"So \\boxed{{x={gold}}}",
        "unit": f"So \\boxed{{{gold} \\text{{ cm}}}}",
        "kilometres": f"So \\boxed{{{gold} km}}",
        "degrees": f"So \\boxed{{{gold}^\\circ}}",
        "dollars": f"So $\\boxed{{{gold}}}$.",
        "two boxes": f"First \\boxed{{0}}, then \\boxed{{{gold}}}",
        "sentence": f"The answer is {gold}",
        "sentence, point": f"The final answer is {gold}.",
        "final": f"We see that x is {gold}.",
        "a little more": f"So \\boxed{{{gold}+0.003}}",
        "more": f"So \\boxed{{{gold}+0.02}}",
        "one more": f"So \\boxed{{{gold}+1}}",
        "display": f"So \\[\\boxed{{\\displaystyle {gold}}}\\]",
        "dfrac": f"So \\boxed{{{gold.replace('frac', 'dfrac')}}}",
        "half": f"So \\boxed{{\\frac{{{gold}}}{{2}}}}",
        "nothing": "So it is not clear.",
        "point zero": f"So \\boxed{{{gold}.0}}",
        "commas": f"So \\boxed{{{gold.replace('1250', '1,250')}}}",
        "about": f"So \\boxed{{x \\approx {gold}}}",
        "blanks": f"So \\boxed{{ {gold} }}",
        "fraction of one": f"So \\boxed{{\\frac{{{gold}}}{{1}}}}",
        "twice one": f"So \\boxed{{1 \\cdot {gold}}}",
    }


def ours(row_of_case: Row, reply: Any) -> float:
    raw = {"id": "1", "question": "What?", "image": "images/1.jpg", "level": 1, "subject": "counting"}
    prepared = row({**raw, "options": row_of_case["options"], "answer": row_of_case["answer"]}, 0)
    return float(_GRADED(prepared, reply) or 0)


_GRADED = by_grader("math", dict(BENCHMARK.grader_config))


def original(folder: Path) -> Verdict:
    """Needs latex2sympy2 with its antlr4, numpy, sympy and tqdm."""
    for module in ("numpy", "sympy", "tqdm", "latex2sympy2"):
        importlib.import_module(module)
    with mock.patch.dict(sys.modules, {"fire": SimpleNamespace()}):
        utils: Any = loaded(folder / "evaluation" / "utils.py")
    tree = ast.parse((folder / "evaluation" / "evaluate.py").read_text(encoding="utf-8"))
    evaluate = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "evaluate")
    loop = next(node for node in ast.walk(evaluate) if isinstance(node, ast.For))
    code = compile(ast.Module(loop.body, []), "evaluate", "exec")

    def verdict(row_of_case: Row, reply: Any) -> float:
        line = {"id": "1", "response": reply}
        scope: Row = {**vars(utils), "re": re, "line": line, "id_raw": {"1": row_of_case}, "regen_answer": True}
        exec(code, scope)
        return float(line["correct"])

    return verdict


_BARE = "ours reads a box, or what is called the answer; the original the end of any sentence, too"
COMPARISON = Comparison(
    name="math-vision",
    benchmarks=("math-vision",),
    scorer="MATH-Vision `evaluate.py`",
    compared=WHOLE,
    repository="mathllm/MATH-V",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        "options/box of letter and option": "the original compares all of a box with the letter, and with the option",
        "options/end": _BARE,
        "value/final": _BARE,
        "value/unit": "the original takes out units that are written without a blank only",
        "value/a little more": "the original rounds both to two places, ours takes differences up to 0.005",
        "value/degrees": "ours takes degrees of a pair, or of a power, for something else",
        "value/display": "the original cannot read the mark-up around a pair",
    },
)
