# SPDX-License-Identifier: Apache-2.0
"""LongBench v2 (arXiv:2412.15204): the letter of "The correct answer is (A)"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.letters import letter_forms
from tests.agreement.originals import defined

_OPTIONS = (
    {"A": "The mayor", "B": "The teacher", "C": "The nurse", "D": "Nobody"},
    {"A": "2 and 3", "B": "3 and 4", "C": "4 and 5", "D": "All of them"},
)


def rows() -> Iterator[Row]:
    for options in _OPTIONS:
        for letter in options:
            yield {**options, "expected_answer": letter}


def original(folder: Path) -> Verdict:
    extract = defined(folder / "pred.py", "extract_answer", re=re).extract_answer

    def verdict(row: Row, reply: Any) -> float:
        return float(extract(str(reply).strip()) == row["expected_answer"])

    return verdict


COMPARISON = Comparison(
    name="longbench-v2",
    benchmarks=("longbench-v2",),
    scorer="LongBench v2 `pred.py`",
    compared=WHOLE,
    repository="THUDM/LongBench",
    rows=rows,
    forms=letter_forms,
    original=original,
    ours=by_grader("multichoice"),
    known=dict.fromkeys(
        (
            *(
                "right letter",
                "right letter in brackets",
                "right letter with text",
                "right label",
                "right label in bold",
            ),
            *("right label, bold letter", "right label with text", "right dollars", "right heading", "right box"),
            *("right box of text", "right after thinking", "right as JSON", "changed"),
        ),
        "the original reads `The correct answer is (A)` only, as its prompt asks; ours the forms that models write",
    ),
)
