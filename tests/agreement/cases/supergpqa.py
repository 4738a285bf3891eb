# SPDX-License-Identifier: Apache-2.0
"""SuperGPQA (arXiv:2502.14739): ten options, by letter or by text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.letters import letter_forms
from tests.agreement.originals import loaded

_OPTIONS = ("Helium", "Neon", "Argon", "Krypton", "Xenon", "Radon", "Lithium", "Sodium", "Potassium", "Caesium")


def rows() -> Iterator[Row]:
    for letter in "ABCDEFGHIJ":
        yield {**dict(zip("ABCDEFGHIJ", _OPTIONS, strict=True)), "expected_answer": letter}


def original(folder: Path) -> Verdict:
    """The script's readers of letters and of contents; what it writes tables with is not needed."""
    for name in ("prettytable", "openpyxl", "openpyxl.styles", "timeout_decorator"):
        sys.modules.setdefault(name, ModuleType(name))
    sys.modules["prettytable"].PrettyTable = SimpleNamespace  # type: ignore[attr-defined]
    for name in ("PatternFill", "Font", "Alignment"):
        setattr(sys.modules["openpyxl.styles"], name, SimpleNamespace)
    sys.modules["timeout_decorator"].timeout = lambda seconds: lambda function: function  # type: ignore[attr-defined]
    sys.modules["timeout_decorator"].TimeoutError = TimeoutError  # type: ignore[attr-defined]
    script = loaded(folder / "eval" / "eval.py")

    def verdict(row: Row, reply: Any) -> float:
        options = [row[letter] for letter in "ABCDEFGHIJ"]
        letter = script.extract_option_labels(reply, "ABCDEFGHIJ")
        if letter is None and (text := script.extract_option_content(reply, options)):
            letter = "ABCDEFGHIJ"[options.index(re.sub(r"\\(.)", r"\1", text))]
        return float(letter == row["expected_answer"])

    return verdict


COMPARISON = Comparison(
    name="supergpqa",
    benchmarks=("supergpqa",),
    scorer="SuperGPQA `eval.py`",
    compared=WHOLE,
    repository="SuperGPQA/SuperGPQA",
    rows=rows,
    forms=letter_forms,
    original=original,
    ours=by_grader("multichoice"),
    known={
        "right label, bold letter": "the original knows one pair of stars before a letter, not those of a label, too",
        "right as JSON": "the original reads no quotation marks between `answer` and its colon",
        "nothing": "the original takes `I` of `I cannot say.` for option I",
    },
)
