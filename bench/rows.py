# SPDX-License-Identifier: Apache-2.0
"""Input and output rows made up by the benches, in the style of grade-school word problems."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_THINGS = ("apples", "pencils", "marbles", "tickets", "cookies", "stamps", "chairs", "bottles")
_NAMES = ("Mara", "Tobias", "Ines", "Jonas", "Leila", "Emil", "Greta", "Noah")


def problems(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Rows with `problem` (about 250 characters, each different) and `expected_answer`."""
    draw = random.Random(seed)
    for number in range(count):
        name, thing = draw.choice(_NAMES), draw.choice(_THINGS)
        boxes, each, away = draw.randint(3, 99), draw.randint(3, 99), draw.randint(1, 8)
        text = (
            f"{name} has {boxes} boxes in shelf number {number}. Each of the boxes holds {each} {thing}, and none "
            f"of them is empty. On the way to the market {name} gives {away} {thing} to a friend and sells none "
            f"of the others. How many {thing} does {name} have left when the market opens?"
        )
        yield {"id": f"row-{number}", "problem": text, "expected_answer": str(boxes * each - away)}


def write_problems(path: Path, count: int) -> None:
    write_rows(path, problems(count))


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(_encode(row) + b"\n")


def records(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Graded rows as an evaluation leaves them; two thirds are right, a few have no answer."""
    draw = random.Random(1000 + seed)
    for row in problems(count):
        gold = row["expected_answer"]
        answer = draw.choices([gold, str(draw.randint(1, 9999)), None], [66, 30, 4])[0]
        start = 1_700_000_000 + draw.random() * 600
        steps = (
            f"First the boxes are counted, then the {gold[0]} that was given away is taken off. "
            * draw.randint(3, 9)
        )
        yield {
            **row,
            "generation": f"{steps}The answer is \\boxed{{{answer}}}." if answer else steps,
            "num_generated_tokens": draw.randint(80, 400),
            "num_input_tokens": 96,
            "finish_reason": "stop" if answer else "length",
            "generation_start_time": start,
            "generation_end_time": start + 2,
            "generation_time": 2.0,
            "predicted_answer": answer,
            "symbolic_correct": answer == gold,
            "outcome": "no_answer" if answer is None else "correct" if answer == gold else "wrong",
        }


def write_records(path: Path, count: int, seed: int) -> None:
    write_rows(path, records(count, seed))
