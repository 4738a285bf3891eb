# SPDX-License-Identifier: Apache-2.0
"""PolyMath (arXiv:2504.18428): mathematics at four levels; its scorer reads the first box of a reply."""

from __future__ import annotations

import importlib
import random
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.data import mirrored

_DATA = "raw.githubusercontent.com/QwenLM/PolyMath/*/data/{language}/{level}.jsonl"
_ROWS = {"low": 4, "medium": 6, "high": 8, "top": 8}
_SECONDS = 5
"""The original gives each comparison one, in a process of its own."""
_LANGUAGES = {
    "en": "First we look at what is given.",
    "zh": "先看已知条件。",
    "de": "Zuerst sehen wir, was gegeben ist.",
    "fr": "Voyons d'abord ce qui est donné.",
}


def rows() -> Iterator[Row]:
    for at, language in enumerate(_LANGUAGES):
        for level, count in _ROWS.items():
            every = list(mirrored(_DATA.format(language=language, level=level)))
            draw = random.Random(level).sample(every, count)[at :: len(_LANGUAGES)]
            for raw in draw:
                yield {"task": level, "language": language, "expected_answer": raw["answer"]}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    plain = gold.strip().rstrip(".").replace("$", "")
    thought = _LANGUAGES[row["language"]]

    def box(answer: str) -> str:
        return f"{thought}\n\n$\\boxed{{{answer}}}$"

    made = {
        "box": box(plain),
        "as given": f"{thought}\n\n\\boxed{{{gold}}}",
        "display": f"{thought}\n\\[\n\\boxed{{ {plain} }}\n\\]\n",
        "equation": box(f"x = {plain}"),
        "large fractions": box(re.sub(r"\\frac", r"\\dfrac", plain)),
        "growing brackets": box(re.sub(r"(?<!left)\(([^()]*)\)", r"\\left(\1\\right)", plain)),
        "small blanks": box(re.sub(r"(?<=[=,]) ?", r"\\,", plain)),
        "wrong, then right": f"\\boxed{{123454321}}? {box(plain)}",
        "right, then wrong": f"{box(plain)} {box('123454321')}",
        "without a box": f"{thought} The answer is {plain}.",
        "bold": f"{thought}\n\n**{plain}**",
        "one more": box(f"{plain} + 1"),
        "negative": box(f"-({plain})"),
        "twice": box(f"2 \\cdot ({plain})"),
        "nothing": thought,
    }
    return made | _numbers(plain, box) | _formulas(plain, box)


def _numbers(plain: str, box: Any) -> dict[str, str]:
    if not plain.isdigit():
        return {}
    return {
        "decimal": box(f"{plain}.0"),
        "thousands": box(f"{int(plain):,}"),
        "thousands in braces": box(f"{int(plain):,}".replace(",", "{,}")),
        "unit": box(f"{plain}\\text{{ km}}"),
        "off by one": box(str(int(plain) + 1)),
        "off by a little": box(f"{int(plain) * 1.00005:.6f}"),
        "hundred times": box(f"{plain}00"),
        "percent": box(f"{plain}\\%"),
        "as a sum": box(f"{int(plain) - 1} + 1"),
        "scientific": box(f"{int(plain)} \\times 10^0"),
    }


def _formulas(plain: str, box: Any) -> dict[str, str]:
    made: dict[str, str] = {}
    if (fraction := re.fullmatch(r"\\frac\{(\d+)\}\{(\d+)\}", plain)) is not None:
        over, under = int(fraction[1]), int(fraction[2])
        made |= {
            "slash": box(f"{over}/{under}"),
            "not reduced": box(f"\\frac{{{3 * over}}}{{{3 * under}}}"),
            "as a decimal": box(f"{over / under:.6f}"),
            "upside down": box(f"\\frac{{{under}}}{{{over}}}"),
        }
    if re.search(r"[a-z]", re.sub(r"\\[a-z]+", "", plain)):
        made["another letter"] = box(re.sub(r"(?<![\\a-z])n(?![a-z])", "m", plain))
    return made


def original(folder: Path) -> Verdict:
    """Needs sympy 1.12.1, antlr4-python3-runtime 4.11.0, regex and word2number."""
    sys.path.insert(0, str(folder / "eval"))
    sys.modules["bundled.symeval"] = importlib.import_module("bundled.symeval.core")
    scripts: Any = importlib.import_module("scripts")
    scripts.call_with_timeout = lambda compare, first, second: _in_time(scripts.symbolic_equal, first, second)
    source = (folder / "eval/run_eval.py").read_text(encoding="utf-8")
    reader: dict[str, Any] = {"re": re}
    exec(source[source.index("def extract_boxed_content") : source.index("def evaluation")], reader)

    def verdict(row: Row, reply: str) -> float:
        boxes = reader["extract_boxed_content"](reply)
        return float(bool(scripts.math_equal(boxes[0] if boxes else None, row["expected_answer"])))

    return verdict


def _in_time(equal: Any, first: str, second: str) -> bool:
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_SECONDS)
    try:
        return bool(equal(first, second))
    except TimeoutError:
        return False
    finally:
        signal.alarm(0)


def _stop(number: int, frame: Any) -> None:
    raise TimeoutError


_NEAR = "the original forgives a ten-thousandth of a number, whole numbers included"
_READ = (
    "the original does not read half-open intervals, several values of a name, a constant of integration, `{,}`"
)
_ALL = {
    "wrong, then right": "the original takes the first box, ours the last",
    "right, then wrong": "the original takes the first box, ours the last",
    "without a box": "the original reads boxes only",
    "unit": "the original reads no unit",
    "off by a little": _NEAR,
    "hundred times": "the original takes a hundred times the right number, or a hundredth, for a percentage",
}
_DRESSED = "box, display, large fractions, growing brackets, small blanks, another letter"
_FORMS = {"medium": _DRESSED, "high": _DRESSED}
COMPARISON = Comparison(
    name="polymath",
    benchmarks=("polymath",),
    scorer="PolyMath `run_eval.py`",
    compared=WHOLE,
    repository="QwenLM/PolyMath",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("math"),
    known={
        **{f"{level}/{form}": why for level in _ROWS for form, why in _ALL.items()},
        **{f"{level}/{form}": _READ for level, several in _FORMS.items() for form in several.split(", ")},
        "medium/equation": _READ,
        "medium/one more": _READ,
        "low/thousands in braces": _READ,
        "low/one more": _NEAR,
        "low/off by one": _NEAR,
    },
)
