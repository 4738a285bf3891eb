# SPDX-License-Identifier: Apache-2.0
"""Answers of all kinds, each changed in ways that keep what it says and in ways that do not, beside math-verify."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from newskills.base.records import Row
from tests.agreement.cases import math_verify
from tests.agreement.compare import WHOLE, Comparison, by_grader

_TABLE = Path(__file__).with_suffix(".txt")


def rows() -> Iterator[Row]:
    """Of the lines `gold ⇔ answer ⇔ what was changed` of the table."""
    golds: dict[tuple[str, str], dict[str, str]] = {}
    kind = ""
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            kind = line[2:]
        else:
            gold, answer, change = line.split(" ⇔ ")
            golds.setdefault((kind, gold), {})[change] = answer
    for (task, gold), answers in golds.items():
        yield {"task": task, "expected_answer": gold, "answers": answers}


def forms(row: Row) -> Mapping[str, str]:
    return {change: f"So the answer is $\\boxed{{{answer}}}$." for change, answer in row["answers"].items()}


_INEQUALITIES = "the original reads no inequality as an interval"
_UNITS = "the original drops units; another unit is another answer"
_SIGNS = "the original does not read this sign of Unicode"
_ANGLES = "the original reads degrees as a bare number; to ours 90° is π/2"
KNOWN = {
    "interval/as an inequality": _INEQUALITIES,
    "interval/as inequalities": _INEQUALITIES,
    "interval/as an absolute value": _INEQUALITIES,
    "set/another sign": "the original knows \\emptyset, not \\varnothing",
    "set/in words": "the original reads no words; ours reads “no solution” as the empty set",
    "tuple/as a set": "the original also accepts a set for a pair; a set has no order",
    "tuple/as a column": "the original tells vectors from tuples",
    "tuple/pointed brackets": "the original does not read ⟨3, −1⟩",
    "fraction/repeating decimal": "the original does not read a decimal with a bar",
    "number/thin blanks": "the original reads three numbers",
    "number/e notation": "the original reads e as Euler's number",
    "number/full stop": "the original does not read a number that ends with a point",
    "number/as a function": "the original does not read C(10, 3) as a binomial",
    "number/as on calculators": "the original does not read ₁₀C₃ as a binomial",
    "number/sign of text": _ANGLES,
    "number/radians": _ANGLES,
    "number/no base": "the original leaves the base away; 1101 is another number than 1101₂",
    "number/another base": "the original leaves the base away; 1101₃ is another number than 1101₂",
    "root/decimal power": "the original finds 2^1.5 and 2√2 different",
    "root/sign of text": _SIGNS,
    "root/as a tangent": _ANGLES,
    "constant/degrees": _ANGLES,
    "constant/upright": "the original does not read an upright i",
    "constant/as a quotient": "the original finds the quotient different; it is 3 − 2i",
    "constant/as a value of zeta": "the original does not know ζ",
    "constant/repeating decimal": "the original does not read a decimal with a bar",
    "constant/in words": "the original reads no numbers in words",
    "expression/sign of text": _SIGNS,
    "expression/as a series": "the original gives a power series no value without a condition on x",
    "text/with its value": "the original compares the text as a whole; ours reads the letter",
    "unit/other unit": _UNITS,
    "unit/squared": _UNITS,
    "unit/converted": "the original drops units; ours converts them",
    "unit/in words": "the original does not read “2 to 3” as a ratio",
}


COMPARISON = Comparison(
    name="math-verify-hard",
    benchmarks=math_verify.COMPARISON.benchmarks,
    scorer="math-verify (PyPI)",
    compared=WHOLE,
    rows=rows,
    forms=forms,
    original=math_verify.original,
    ours=by_grader("math"),
    known=KNOWN,
)
