# SPDX-License-Identifier: Apache-2.0
"""GPQA and MMLU as simple-evals reads them: the letter behind "Answer:"."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_OPTIONS = (
    {"A": "alpha stone", "B": "beta river", "C": "gamma cloud", "D": "delta field"},
    {"A": "12", "B": "15", "C": "20", "D": "25"},
    {"A": "is", "B": "not in", "C": "**", "D": "//"},
    {"A": "Vitamin C", "B": "Type B", "C": "A dog", "D": "None of them"},
)
_THOUGHT = "Let me go through the options one by one.\n"


def rows() -> Iterator[Row]:
    for options in _OPTIONS:
        for letter in options:
            yield {**options, "expected_answer": letter}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    wrong = "ABCD"["ABCD".index(gold) - 1]
    made: dict[str, str] = {}
    for kind, letter in (("right", gold), ("wrong", wrong)):
        made |= {
            f"{kind} label": f"{_THOUGHT}Answer: {letter}",
            f"{kind} small": f"{_THOUGHT}answer: {letter.lower()}",
            f"{kind} dollars": f"{_THOUGHT}Answer: ${letter}$",
            f"{kind} with text": f"{_THOUGHT}Answer: {letter}) {row[letter]}",
            f"{kind} point": f"{_THOUGHT}Answer: {letter}.",
            f"{kind} blanks": f"{_THOUGHT}Answer :  {letter}",
            f"{kind} label in bold": f"{_THOUGHT}**Answer: {letter}**",
            f"{kind} then why": f"Answer: {letter}\nThe others do not fit.",
            f"{kind} final": f"{_THOUGHT}Final Answer: {letter}",
            f"{kind} bold letter": f"{_THOUGHT}Answer: **{letter}**",
            f"{kind} in brackets": f"{_THOUGHT}Answer: ({letter})",
            f"{kind} box": f"{_THOUGHT}\\boxed{{{letter}}}",
        }
    return made | {
        "nothing": f"{_THOUGHT}I do not know.",
        "another after it": f"Answer: {wrong}\nNo, I was wrong.\nAnswer: {gold}",
    }


def original(folder: Path) -> Verdict:
    """Needs numpy, jinja2, requests and tqdm."""
    sys.path.insert(0, str(folder.parent))
    pattern = re.compile(importlib.import_module(f"{folder.name}.common").ANSWER_PATTERN_MULTICHOICE)

    def verdict(row: Row, reply: Any) -> float:
        match = pattern.search(reply)
        return float(match is not None and match[1] == row["expected_answer"])

    return verdict


_MARKS = "the original knows no mark-up, brackets or box around a letter"
COMPARISON = Comparison(
    name="gpqa",
    benchmarks=("gpqa",),
    scorer="simple-evals, reading of letters",
    compared=WHOLE,
    repository="openai/simple-evals",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("multichoice"),
    known={
        "right bold letter": _MARKS,
        "right in brackets": _MARKS,
        "right box": _MARKS,
        "right small": "the original wants a capital",
        "another after it": "the original takes the first answer, ours the last",
    },
)
