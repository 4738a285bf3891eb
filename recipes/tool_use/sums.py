# SPDX-License-Identifier: Apache-2.0
"""Sums beyond the reach of a small model, to be solved with a line of Python: rows, prompt, solver and grader."""

from __future__ import annotations

import random
from typing import Any

from newskills.base.benchmark import Benchmark

ITEMS = {"test": 400, "train": 1200}


def sums(split: str) -> list[dict[str, Any]]:
    """Two to four numbers below 100,000, added and subtracted; no question of `train` is in `test`."""
    seen: set[str] = set()
    made: dict[str, list[dict[str, Any]]] = {}
    for name, count in ITEMS.items():
        draw, rows = random.Random(f"sums-{name}"), made.setdefault(name, [])  # noqa: S311 - no secret
        while len(rows) < count:
            numbers = [draw.randint(100, 99_999) for _ in range(draw.randint(2, 4))]
            text, value = str(numbers[0]), numbers[0]
            for number in numbers[1:]:
                sign = draw.choice((1, -1))
                text, value = f"{text} {'+' if sign > 0 else '-'} {number}", value + sign * number
            if text not in seen:
                seen.add(text)
                question, answer = f"What is {text}?", str(value)
                rows.append({"id": f"{name}-{len(rows)}", "question": question, "expected_answer": answer})
    return made[split]


BENCHMARK = Benchmark(
    name="sums",
    category="math-natural",
    title="Sums with Python",
    generate_rows=sums,
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
