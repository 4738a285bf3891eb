# SPDX-License-Identifier: Apache-2.0
"""Rows for the recipe: problems whose reply is begun with a block of Python, the correct replies as solutions, and what
the run shows at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from files import Row, Rows, main

BEGIN = "```python\n"
FIRST = 96
"""Problems whose solutions are looked for."""


def begun(rows: Rows) -> Iterator[Row]:
    """Yield the first problems, each with the beginning of a reply."""
    for row in islice(rows, FIRST):
        yield {**row, "begin": BEGIN}


def solved(rows: Rows) -> Iterator[Row]:
    """Select, as rejection sampling does, the replies that the grader calls correct, each whole, from its beginning
    on."""
    for row in rows:
        if row.get("outcome") == "correct":
            yield {**row, "generation": BEGIN + row["generation"]}


def sampled(rows: Rows) -> Iterator[Row]:
    """Yield the samples of the reinforcement learning, one a row, for the grader to judge once more."""
    for row in rows:
        for number, sample in enumerate(row["responses"]):
            yield {
                "id": f"{row['step']}-{row['problem_idx']}-{number}",
                "expected_answer": row["ground_truth"],
                "generation": sample["text"],
                "reward": sample["reward"],
            }


def replayed(rows: Rows) -> Iterator[Row]:
    """Count how many of them have the reward again that they had in training."""
    every = [row for row in rows if row["reward"] is not None]
    other = [row["id"] for row in every if row["reward"] != float(row["outcome"] == "correct")]
    yield {"samples": len(every), "other reward": len(other), "ids": other[:10]}


def used(rows: Rows) -> Iterator[Row]:
    """Count how many of the replies to the held-out problems ran Python."""
    every = list(rows)
    yield {"replies": len(every), "with Python": sum(row.get("num_code_executions", 0) > 0 for row in every)}


if __name__ == "__main__":
    steps = {"begun": begun, "solved": solved, "sampled": sampled, "replayed": replayed, "used": used}
    main(steps, str(__doc__))
