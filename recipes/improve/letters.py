# SPDX-License-Identifier: Apache-2.0
"""Five letters, to be written backwards: rows, prompt and grader."""

from __future__ import annotations

import random
from string import ascii_lowercase
from typing import Any

from newskills.base.benchmark import Benchmark

ITEMS = {"test": 400, "train": 2000}


def letters(split: str) -> list[dict[str, Any]]:
    """Make the questions of a split; none of `train` is in `test`."""
    seen: set[str] = set()
    made: dict[str, list[dict[str, Any]]] = {}
    for name, count in ITEMS.items():
        draw, rows = random.Random(f"letters-{name}"), made.setdefault(name, [])  # noqa: S311 - no secret
        while len(rows) < count:
            drawn = draw.sample(ascii_lowercase, 5)
            text = " ".join(drawn)
            if text not in seen:
                seen.add(text)
                question = f"Write these letters backwards: {text}. Reply with nothing but the letters."
                answer = " ".join(reversed(drawn))
                rows.append({"id": f"{name}-{len(rows)}", "question": question, "expected_answer": answer})
    return made[split]


BENCHMARK = Benchmark(
    name="letters",
    category="reasoning",
    title="Five letters backwards",
    generate_rows=letters,
    prompt="generic/default",
    grader="exact",
    items=ITEMS,
)
