# SPDX-License-Identifier: Apache-2.0
"""MMMU-Pro (arXiv:2409.02813): which of ten options a reply chooses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.letters import letter_forms
from tests.agreement.originals import defined

_LETTERS = "ABCDEFGHIJ"
_OPTIONS = (
    *("a cubic meter", "the left ventricle", "a major chord", "supply and demand", "12.5 kN"),
    *("Rembrandt", "it falls", "none of these", "0.305 m", "the second step"),
)


def rows() -> Iterator[Row]:
    for texts, letters in ((_OPTIONS, _LETTERS), (_OPTIONS[::-1], "CFIJ")):
        options = dict(zip(_LETTERS, texts, strict=True))
        for letter in letters:
            yield {**options, "expected_answer": letter}


def original(folder: Path) -> Verdict:
    """Needs numpy. A reply in which it finds nothing gets a random letter: no verdict."""
    import numpy

    draws: list[bool] = []

    def chosen(letters: list[str]) -> str:
        draws.append(True)
        return letters[0]

    program = folder / "mmmu-pro" / "evaluate.py"
    scope: dict[str, Any] = {"re": re, "np": numpy, "random": SimpleNamespace(choice=chosen)}
    parse = defined(program, "parse_multi_choice_response", **scope).parse_multi_choice_response

    def verdict(row: Row, reply: Any) -> float | None:
        draws.clear()
        letter = parse(reply, list(_LETTERS), {letter: row[letter] for letter in _LETTERS})
        return None if draws else float(letter == row["expected_answer"])

    return verdict


COMPARISON = Comparison(
    name="mmmu-pro",
    benchmarks=("mmmu-pro",),
    scorer="MMMU-Pro `evaluate.py`",
    compared=WHOLE,
    repository="MMMU-Benchmark/MMMU",
    rows=rows,
    forms=letter_forms,
    original=original,
    ours=by_grader("multichoice"),
    known={
        **dict.fromkeys(
            ("right, then a remark", "wrong, then a remark", "nothing"),
            "the original takes the word `I` for option I",
        ),
        "cut off": "the original takes any letter of a reply that does not come to an answer",
        "two letters": "ours takes a reply that names two options for undecided, the original the last of them",
    },
)
