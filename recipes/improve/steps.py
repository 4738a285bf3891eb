# SPDX-License-Identifier: Apache-2.0
"""Rows for the recipe: solved problems to begin with, others, which the model solves itself, and wrong ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from files import Row, Rows, main

FIRST, WRONG = 400, 300
"""Solved problems of each task, so many that the model is sometimes correct afterwards, and often not; problems with
wrong expected answers."""


def solved(rows: Rows) -> Iterator[Row]:
    """Yield the first problems as conversations with their expected answer."""
    for row in islice(rows, FIRST):
        question, answer = row["question"], row["expected_answer"]
        yield {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def others(rows: Rows) -> Iterator[Row]:
    """Yield the problems of which no answer was shown, without the last ones."""
    yield from list(rows)[FIRST:-WRONG]


def wrong(rows: Rows) -> Iterator[Row]:
    """Yield the last problems, each with the expected answer of another one, as a data set may have them."""
    last = list(rows)[-WRONG:]
    for row, other in zip(last, [*last[1:], last[0]], strict=True):
        yield {**row, "expected_answer": other["expected_answer"], "generation": other["expected_answer"]}


def joined(rows: Rows) -> Iterator[Row]:
    """Join the rows of all files."""
    yield from rows


if __name__ == "__main__":
    main({"solved": solved, "others": others, "wrong": wrong, "joined": joined}, str(__doc__))
