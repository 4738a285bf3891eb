# SPDX-License-Identifier: Apache-2.0
"""Rows for the recipe: solved problems to begin with, others, and those of them that are sampled."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from files import Row, Rows, main

FIRST, SAMPLED = 704, 200
"""Solved problems: the first model sees some of them, the teacher all. Others whose replies are sampled."""


def solved(rows: Rows) -> Iterator[Row]:
    """Yield the first problems as conversations with their expected answer."""
    for row in islice(rows, FIRST):
        question, answer = row["question"], row["expected_answer"]
        yield {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def others(rows: Rows) -> Iterator[Row]:
    """Yield the problems of which no answer was shown."""
    yield from islice(rows, FIRST, None)


def sampled(rows: Rows) -> Iterator[Row]:
    """Yield the first SAMPLED problems of which no answer was shown."""
    yield from islice(rows, FIRST, FIRST + SAMPLED)


if __name__ == "__main__":
    main({"solved": solved, "others": others, "sampled": sampled}, str(__doc__))
