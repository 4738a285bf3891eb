# SPDX-License-Identifier: Apache-2.0
"""SciBench (arXiv:2307.10635): numbers within 5 % of the right one; some have a power of ten in their unit."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.science.scibench import BENCHMARK, row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import defined, loaded

_ANSWERS = (
    ("0.0487", " "),
    ("+85", "$\\mathrm{kJ} \\mathrm{mol}^{-1}$"),
    ("-1.25", "eV"),
    ("12", "m/s"),
    ("4.5", "$10^3 \\mathrm{~N}$"),
    ("7.4", "$10^{-3}$"),
    ("1.602", "$10^{-19} \\mathrm{C}$"),
    ("2500", "K"),
    ("0.5", "$^\\circ$"),
    ("1,200", "Pa"),
)


def rows() -> Iterator[Row]:
    for answer, unit in _ANSWERS:
        yield {"task": "power in the unit" if "10^" in unit else "number", "answer": answer, "unit": unit}


def forms(row_of_case: Row) -> Mapping[str, str]:
    number = row_of_case["answer"].removeprefix("+").replace(",", "")
    value = float(number)
    exponent = _exponent(row_of_case["unit"])
    power = f" \\times 10^{{{exponent}}}" if exponent else ""
    texts = {
        "the same": f"{number}{power}",
        "x =": f"x = {number}{power}",
        "a unit": f"{number}{power} \\mathrm{{m}}",
    }
    for name, factor in (("3 % more", 1.03), ("4 % less", 0.96), ("6 % more", 1.06), ("7 % less", 0.93)):
        texts[name] = f"{value * factor:.6g}{power}"
    texts |= {
        "other sign": f"{-value:g}{power}",
        "twice": f"{2 * value:g}{power}",
        "ten times": f"{10 * value:g}{power}",
        "more places": f"{number}{'' if '.' in number else '.'}0004{power}",
        "as a float": repr(value * 10.0**exponent),
        "exponent": f"{value * 10.0**exponent:.4e}",
        "star": f"{number} * 10^{exponent}" if exponent else f"{number}",
        "no braces": f"{number} \\times 10^{exponent}" if exponent else f"{number}",
        "unit behind a blank": f"{number}{power} J",
        "words": "not determined",
        "text": f"\\text{{{number}{power}}}",
        "about": f"\\approx {number}{power}",
    }
    boxes = {form: f"We get \\boxed{{{text}}}." for form, text in texts.items()}
    return boxes | {
        "two boxes": f"\\boxed{{{3 * value:g}{power}}} and then \\boxed{{{number}{power}}}",
        "empty box": "\\boxed{}",
        "no box": f"It is {number}{power}",
        "commas": f"\\boxed{{{value:,.10g}{power}}}",
        "braces around": f"\\boxed{{{{{number}}}{power}}}",
        "cut off": f"\\boxed{{{number}{power}",
        "after the box": f"\\boxed{{{number}{power}}} \\mathrm{{m}}",
        "thin blank": f"\\boxed{{{number}\\,{power}}}",
        "point at the end": f"\\boxed{{{number}{power}.}}",
        "dollars": f"$\\boxed{{{number}{power}}}$",
        "fraction": f"\\boxed{{\\frac{{{value:g}}}{{1}}{power}}}",
    }


def _exponent(unit: str) -> int:
    _, sign, rest = unit.partition("10^")
    digits = rest.strip("{")
    end = next((at for at, char in enumerate(digits) if char not in "-0123456789"), len(digits))
    return int(digits[:end]) if sign else 0


def ours(row_of_case: Row, reply: Any) -> float:
    raw = {"problem_text": "How much?", "source": "atkins", "problemid": "1"}
    prepared = row({**raw, "answer_number": row_of_case["answer"], "unit": row_of_case["unit"]}, 0)
    return float(_GRADED(prepared, reply) or 0)


_GRADED = by_grader("math", dict(BENCHMARK.grader_config))


def original(folder: Path) -> Verdict:
    """What `eval_zero.py` does with the text of a model."""
    program = folder / "eval" / "eval_zero.py"
    helpers: Any = loaded(folder / "eval" / "post_process.py")
    equal = defined(program, "equiv", math=math).equiv
    tree = ast.parse(program.read_text(encoding="utf-8"))
    asked = next(node for node in ast.walk(tree) if isinstance(node, ast.For) and _reads(node))
    steps = [node for node in asked.body if not _asks(node)]
    code = compile(
        ast.Module(steps[: 1 + max(at for at, node in enumerate(steps) if _reads(node))], []), "run", "exec"
    )

    def verdict(row_of_case: Row, reply: Any) -> float:
        problem = {
            "source": "atkins",
            "problem_text": "How much?",
            "answer_number": row_of_case["answer"].replace("−", "-"),
            "unit": row_of_case["unit"],
        }
        scope: Row = {
            **vars(helpers),
            "problem_data": problem,
            "model_output_ori": reply,
            "start_n": 0,
            "count": 0,
        }
        exec(code, scope)
        try:
            return float(equal(scope["model_output"], scope["answer"].replace(",", ""), problem["unit"]))
        except AttributeError:  # no box: the program's own `except`
            return 0.0

    return verdict


def _reads(node: ast.AST) -> bool:
    return "parse_math_answer" in ast.unparse(node) or "cal_not" in ast.unparse(node)


def _asks(node: ast.AST) -> bool:
    """Steps that ask a model, count, or skip."""
    return any(word in ast.unparse(node) for word in ("call_engine", "zero(", "count"))


_DRESSED = ("text", "about", "braces around", "thin blank", "fraction")
COMPARISON = Comparison(
    name="scibench",
    benchmarks=("scibench",),
    scorer="SciBench `eval_zero.py`",
    compared=WHOLE,
    repository="mandyyyyii/scibench",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        **dict.fromkeys(
            (
                *(f"{task}/{form}" for task in ("number", "power in the unit") for form in _DRESSED),
                "number/point at the end",
            ),
            "the original reads bare numbers, or a number × 10^n, and no other mark-up",
        ),
        **dict.fromkeys(
            ("power in the unit/as a float", "power in the unit/exponent"),
            "where a power of ten is the whole unit, the original does not take it for part of the answer",
        ),
    },
)
