# SPDX-License-Identifier: Apache-2.0
"""Right answers of a few words, and what a model makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import Verdict
from tests.graders.plain import plain_grader

LABEL = "Answer: "
GOLDS = (
    "The Beatles",
    "William the Conqueror",
    "Denver Broncos",
    "12",
    "1,500",
    "3.50",
    "July 4, 1776",
    "U.S. Navy",
    "well-known left-hander",
    "$4.5 million",
    "20%",
    "rock 'n' roll",
    "Schrödinger’s cat",
    "A Tale of Two Cities",
    "C++",
    "yes",
    "no",
    "an_under_score",
    "Café de l'Opéra",
    "first, second and third",
    "Vitamin A",
    "twenty-one",
    "–7 °C",
    "São Paulo (Brazil)",
)
_MEASURES = ("em", "f1")


def rows(golds: Sequence[str] = GOLDS) -> Iterator[Row]:
    """Each with an answer that is accepted besides."""
    for number, gold in enumerate(golds):
        for measure in _MEASURES:
            yield {"task": measure, "expected_answer": gold, "accepted_answers": [f"{gold} itself"][: number % 2]}


def forms(row: Row) -> Mapping[str, str]:
    gold = str(row["expected_answer"])
    words = gold.split()
    answers = {
        "the same": gold,
        "upper case": gold.upper(),
        "with an article": f"the {gold}",
        "with a point": f"{gold}.",
        "in quotes": f'"{gold}"',
        "a word more": f"{gold} indeed",
        "said twice": f"{gold} {gold}",
        "first word": words[0],
        "last word": words[-1],
        "reversed": " ".join(reversed(words)),
        "blanks for hyphens": gold.replace("-", " ").replace("_", " "),
        "hyphens for blanks": "-".join(words),
        "letters and digits": "".join(char for char in gold if char.isalnum() or char.isspace()),
        "straight quotes": gold.replace("’", "'"),
        "curly quotes": gold.replace("'", "’"),
        "plural": f"{gold}s",
        "accepted": f"{gold} itself",
        "sentence": f"It was {gold} that did it",
        "another": "something else altogether",
        "punctuation": "…!?",
        "an article": "the",
        "no": "no",
    }
    return {form: f"{LABEL}{answer}" for form, answer in answers.items()}


def golds(row: Row) -> list[str]:
    return [row["expected_answer"], *row["accepted_answers"]]


def by_measure(exact: Callable[[str, Row], Any], f1: Callable[[str, Row], Any]) -> Verdict:
    """The official scorer of an answer: of the measure that the row names."""
    scorers = {"em": exact, "f1": f1}
    return lambda row, reply: float(scorers[row["task"]](str(reply).removeprefix(LABEL), row))


def ours(config: Row) -> Verdict:
    """What the grader `short_answer` says of the reply."""
    grader = plain_grader("short_answer", config)
    return lambda row, reply: float(grader.grade({**row, "generation": reply}).fields[row["task"]])
