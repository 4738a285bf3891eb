# SPDX-License-Identifier: Apache-2.0
"""Rows for the recipe: solved problems to begin with, and the others, which the model solves itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from files import Row, Rows, main

FIRST = 480
"""Solved problems: so many that the model is sometimes correct afterwards, and often not."""


def solved(rows: Rows) -> Iterator[Row]:
    """The first problems as conversations with their expected answer."""
    for row in islice(rows, FIRST):
        question, answer = row["question"], row["expected_answer"]
        yield {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def others(rows: Rows) -> Iterator[Row]:
    """The problems of which no answer was shown."""
    yield from islice(rows, FIRST, None)


if __name__ == "__main__":
    main({"solved": solved, "others": others}, str(__doc__))
