# SPDX-License-Identifier: Apache-2.0
"""What happens between the generations: `python steps.py STEP OUT IN…`. Files of JSON lines in, one out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from files import Row, Rows, main, said

FENCE = "```"


def passed(rows: Rows) -> Iterator[Row]:
    """Yield finished solutions with one block of code behind the reasoning, which passes the tests of its row if it
    has any.

    What the sandbox lost is neither right nor wrong, and left out.
    """
    for row in rows:
        tested = bool(row.get("test_cases"))
        whole = row.get("finish_reason") == "stop" and said(row).count(FENCE) == 2
        if whole and (row.get("outcome") == "correct" if tested else True):
            yield {"input": row["problem"], "output": row["generation"], "tested": tested}


def with_tests(rows: Rows) -> Iterator[Row]:
    """Yield problems that have tests."""
    return (row for row in rows if row.get("test_cases"))


def without_tests(rows: Rows) -> Iterator[Row]:
    """Return the rows that have no tests."""
    return (row for row in rows if not row.get("test_cases"))


if __name__ == "__main__":
    main({"passed": passed, "with_tests": with_tests, "without_tests": without_tests}, str(__doc__))
