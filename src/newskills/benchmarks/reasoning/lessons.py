# SPDX-License-Identifier: Apache-2.0
"""A lesson for a model of about 100 million parameters: nothing it knows, learnt in minutes on a CPU.

The rows are made here, from the seed of their split; no question of `train` is in `test`.
"""

import random

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row

_ITEMS = {"test": 400, "train": 2000}
_WAYS = {"ascending": False, "descending": True}
FORM = "Reply with nothing but the numbers, separated by commas."


def sorting_rows(split: str) -> list[Row]:
    """Draw four different numbers below 100, to be put in order."""
    seen: set[str] = set()
    made: dict[str, list[Row]] = {}
    for name, count in _ITEMS.items():
        draw, rows = random.Random(f"sorting-{name}"), made.setdefault(name, [])  # noqa: S311 - no secret
        while len(rows) < count:
            numbers, way = draw.sample(range(100), 4), draw.choice(list(_WAYS))
            question = f"Sort these numbers in {way} order: {_join_numbers(numbers)}. {FORM}"
            if question not in seen:
                seen.add(question)
                answer = _join_numbers(sorted(numbers, reverse=_WAYS[way]))
                rows.append({"id": f"{name}-{len(rows)}", "question": question, "expected_answer": answer})
    return made[split]


def _join_numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


BENCHMARK = Benchmark(
    name="sorting-lesson",
    category="reasoning",
    title="Sort four numbers (made here, to be learnt)",
    generate_rows=sorting_rows,
    prompt="generic/default",
    grader="exact",
    items=_ITEMS,
    licence="Apache-2.0",
    homepage="https://github.com/newskills/newskills",
    chance=0.0,
    traps=("The reply must be the numbers and nothing else, as the prompt says: who chats gets nothing.",),
)
