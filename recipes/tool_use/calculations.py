# SPDX-License-Identifier: Apache-2.0
"""Calculations beyond the reach of a small model, given in words, to be solved with a line of Python: rows, prompt,
solver and grader."""

from __future__ import annotations

import random
from typing import Any

from newskills.base.benchmark import Benchmark

ITEMS = {"test": 400, "train": 1200}
OPERATIONS = (("add", "+"), ("take away", "-"), ("multiply by", "*"))


def calculations(split: str) -> list[dict[str, Any]]:
    """Return problems with a number and two steps, as in "Take 4812, add 377, then multiply by 12."; no question of
    `train` is in `test`."""
    seen: set[str] = set()
    made: dict[str, list[dict[str, Any]]] = {}
    for name, count in ITEMS.items():
        draw, rows = random.Random(f"calculations-{name}"), made.setdefault(name, [])  # noqa: S311 - no secret
        while len(rows) < count:
            question, answer = _calculation(draw)
            if question not in seen:
                seen.add(question)
                rows.append({"id": f"{name}-{len(rows)}", "question": question, "expected_answer": answer})
    return made[split]


def _calculation(draw: random.Random) -> tuple[str, str]:
    value = draw.randint(100, 9_999)
    parts = [f"Take {value}"]
    for words, sign in draw.sample(OPERATIONS, 2):
        number = draw.randint(3, 99) if sign == "*" else draw.randint(100, 9_999)
        parts.append(f"{words} {number}")
        value = {"+": value + number, "-": value - number, "*": value * number}[sign]
    return f"{parts[0]}, {parts[1]}, then {parts[2]}. What is the result?", str(value)


BENCHMARK = Benchmark(
    name="calculations",
    category="math-natural",
    title="Calculations in words, with Python",
    generate_rows=calculations,
    prompt="generic/default",
    grader="exact",
    grader_config={"extract": "answer"},
    defaults={
        "code_execution": True,
        "code_tags": "qwen",
        "server.code_execution.max_code_executions": 2,
        "inference.endpoint_type": "text",
        "inference.tokens_to_generate": 96,
        "inference.temperature": 0.0,
    },
    items=ITEMS,
)
