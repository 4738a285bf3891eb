# SPDX-License-Identifier: Apache-2.0
"""Rows for the recipe: problems whose reply is begun with a block of Python, and the correct replies as solutions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from files import Row, Rows, main

BEGIN = "```python\n"
FIRST = 120
"""Problems whose solutions are looked for."""


def begun(rows: Rows) -> Iterator[Row]:
    """The first problems, each with the beginning of a reply."""
    for row in islice(rows, FIRST):
        yield {**row, "begin": BEGIN}


def solved(rows: Rows) -> Iterator[Row]:
    """Rejection sampling: the replies that the grader calls correct, each whole, from its beginning on."""
    for row in rows:
        if row.get("outcome") == "correct":
            yield {**row, "generation": BEGIN + row["generation"]}


if __name__ == "__main__":
    main({"begun": begun, "solved": solved}, str(__doc__))
