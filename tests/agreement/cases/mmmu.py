# SPDX-License-Identifier: Apache-2.0
"""MMMU (arXiv:2311.16502): the option that a reply chooses, as the authors' script parses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_OPTIONS = (
    {"A": "a cubic meter", "B": "the left ventricle", "C": "a major chord", "D": "supply and demand"},
    {"A": "12.5 kN", "B": "15 kN", "C": "20 kN", "D": "25.5 kN"},
    {"A": "Rembrandt", "B": "Vermeer", "C": "Frans Hals", "D": "Jan Steen"},
    {"A": "rises", "B": "falls", "C": "stays the same", "D": "cannot be known"},
)


def rows() -> Iterator[Row]:
    for options in _OPTIONS:
        for letter in options:
            yield {**options, "expected_answer": letter}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    wrong = "ABCD"["ABCD".index(gold) - 1]
    replies: dict[str, str] = {}
    for kind, letter in (("right", gold), ("wrong", wrong)):
        text = row[letter]
        replies |= {
            f"{kind} letter": letter,
            f"{kind} letter and point": f"{letter}.",
            f"{kind} in brackets": f"({letter})",
            f"{kind} sentence": f"The answer is ({letter}).",
            f"{kind} label": f"I looked at the picture.\nAnswer: {letter}",
            f"{kind} with text": f"Answer: ({letter}) {text}",
            f"{kind} so": f"So the answer is {letter}",
            f"{kind} option": f"It must be option ({letter}), as the picture shows.",
            f"{kind} text alone": f"From the picture I conclude that it is {text}",
            f"{kind} bold": f"**({letter})** {text}",
            f"{kind} correct": f"Therefore ({letter}) is correct.",
        }
    return replies | {
        "another after it": f"It is not ({wrong}), it is ({gold}).",
        "two steps": f"({wrong}) does not fit.\nAnswer: {gold}",
    }


def original(folder: Path) -> Verdict:
    """Needs numpy. A reply in which it finds nothing gets a random letter: no verdict."""
    parse = loaded(folder / "mmmu" / "utils" / "eval_utils.py")
    draws: list[bool] = []

    def chosen(letters: list[str]) -> str:
        draws.append(True)
        return letters[0]

    parse.random.choice = chosen

    def verdict(row: Row, reply: Any) -> float | None:
        draws.clear()
        options = {letter: row[letter] for letter in "ABCD"}
        letter = parse.parse_multi_choice_response(reply, list(options), options)
        return None if draws else float(letter == row["expected_answer"])

    return verdict


COMPARISON = Comparison(
    name="mmmu",
    benchmarks=("mmmu",),
    scorer="MMMU `eval_utils.py`",
    compared=WHOLE,
    repository="MMMU-Benchmark/MMMU",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("multichoice"),
    known={
        "two steps": "the original prefers a letter in brackets to any other, wherever it stands",
    },
)
