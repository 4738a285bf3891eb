# SPDX-License-Identifier: Apache-2.0
"""A run whose failures have known causes: word problems in four seeds, graded by the grader of mathematics."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

from tests.view.comparison.runs import write_run

from newskills.run.grade import grade_rows

SEEDS = 4
SHARES = {
    "truncation": 0.20,
    "tool": 0.15,
    "extraction": 0.08,
    "environment": 0.05,
    "grader": 0.04,
    "instruction": 0.06,
    "arithmetic": 0.06,
    "knowledge": 0.08,
}
"""Of all samples; the expected answers of another 10 % of the problems are wrong, and the other samples are correct."""
GOLD_SHARE = 0.10
_WRONG = (
    lambda a, b, c: (f"{a} * {b + c}", a * (b + c)),
    lambda a, b, c: (f"{a} + {b} + {c}", a + b + c),
    lambda a, b, c: (f"{a * b} - {c}", a * b - c),
    lambda a, b, c: (f"{b} * {c} + {a}", b * c + a),
    lambda a, b, c: (f"{a * b}", a * b),
)
_OPENINGS = ("First we count the boxes.", "Let me think.", "We need the pens in all boxes.", "Each box counts.")
_FAULTS = (
    "Traceback (most recent call last):\n  File \"<stdin>\", line 1\nNameError: name 'boxes' is not defined",
    "bash: python3: command not found",
    "",
    "TimeoutError: the call timed out after 10 s",
)
_DECLINED = ("I'm sorry, but I can't help with homework.", "I am unable to work this out without a picture.")


def planted_run(folder: Path, problems: int, seed: int = 0) -> Counter[str]:
    """Writes a run; returns cause → samples that have it, by construction."""
    draw = random.Random(seed)
    numbers = list(range(problems))
    draw.shuffle(numbers)
    golden = set(numbers[: round(GOLD_SHARE * problems)])
    slots = [(number, place) for number in range(problems) if number not in golden for place in range(SEEDS)]
    draw.shuffle(slots)
    causes = {(number, place): "gold" for number in golden for place in range(SEEDS)}
    for cause, share in SHARES.items():
        for _ in range(round(share * problems * SEEDS)):
            causes[slots.pop()] = cause
    seeds: dict[int | None, list[dict[str, Any]]] = {}
    for place in range(SEEDS):
        rows = [_row(draw, number, causes.get((number, place), "")) for number in range(problems)]
        graded = list(grade_rows(rows, "math", {}, processes=1))
        for row in graded:
            row |= row.pop("verdict", {})
        seeds[place] = graded
    write_run(folder, seeds)
    return Counter(causes.values())


def _row(draw: random.Random, number: int, cause: str) -> dict[str, Any]:
    numbers = random.Random(number)
    a, b, c = numbers.randint(12, 60), numbers.randint(11, 40), numbers.randint(2, 9) * 100 + number
    truth = a * b + c
    opening = draw.choice(_OPENINGS)
    reply = f"{opening} There are {a} * {b} = {a * b} pens in boxes, and {a * b} + {c} = {truth} in all.\n"
    row: dict[str, Any] = {
        "id": f"p{number}",
        "problem": f"A shop has {a} boxes of {b} pens and {c} single pens. How many pens are there?",
        "expected_answer": str(truth),
        "generation": f"{reply}The answer is \\boxed{{{truth}}}.",
        "num_generated_tokens": 60,
        "finish_reason": "stop",
    }
    return _PLANTED[cause](draw, row, a, b, c)


def _cut(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    text = f"{a} * {b} = {a * b}, and {a * b} + {c} = {a * b + c}. "
    reply = text * 30 if draw.random() < 0.5 else f"{row['generation'][:70]}"
    return row | {"generation": reply, "finish_reason": "length", "num_generated_tokens": 512}


def _tool(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    wrong = a * b + draw.randint(1, 99)
    noted = draw.choice(("The tool gives that", "The call failed, so I guess"))
    reply = f"{noted}: the answer is \\boxed{{{wrong}}}."
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "python", "arguments": f'{{"code": "{a}*{b}+boxes"}}'},
    }
    turns = [
        {"role": "user", "content": row["problem"]},
        {"role": "assistant", "content": "I compute it.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": draw.choice(_FAULTS)},
        {"role": "assistant", "content": reply},
    ]
    return row | {"generation": reply, "conversation": turns}


def _misread(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    return row | {"generation": f"The boxes hold \\boxed{{{a * b}}} pens. With the single ones it is {a * b + c}."}


def _lost(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    lost = {"outcome": "unscored", "outcome_cause": "provider", "error": "timeout", "detailed_error": "no reply"}
    return row | {"generation": "", "verdict": {**lost, "symbolic_correct": None, "predicted_answer": None}}


def _misjudged(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    wrong = {"outcome": "wrong", "outcome_cause": "model", "symbolic_correct": False}
    return row | {"verdict": {**wrong, "predicted_answer": f"{a * b + c:,}.0"}}


def _declined(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    return row | {"generation": draw.choice(_DECLINED)}


def _miscalculated(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    product = a * b + draw.choice((-100, 100, 40, -60))
    sign = draw.choice(("*", "×", "\\times"))
    steps = f"There are {a} {sign} {b} = {product} pens in boxes, and {product} + {c} = {product + c} in all."
    return row | {"generation": f"{steps}\nThe answer is \\boxed{{{product + c}}}."}


def _misunderstood(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    formula, value = draw.choice(_WRONG)(a, b, c)
    hint = f" It is not {a * b + c}." if draw.random() < 0.3 else ""
    reply = f"{draw.choice(_OPENINGS)}{hint} We take {formula}.\nThe answer is \\boxed{{{value}}}."
    return row | {"generation": reply} | (_recovered(row, reply) if draw.random() < 0.3 else {})


def _recovered(row: dict[str, Any], reply: str) -> dict[str, Any]:
    """A conversation in which a tool fails, is called again and works: the failure lies elsewhere."""
    call = {"id": "1", "type": "function", "function": {"name": "python", "arguments": '{"code": "print(1)"}'}}
    turns = [
        {"role": "user", "content": row["problem"]},
        {"role": "assistant", "content": "I compute it.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": _FAULTS[0]},
        {"role": "assistant", "content": "Once more.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "17"},
        {"role": "assistant", "content": reply},
    ]
    return {"conversation": turns}


def _wrong_gold(draw: random.Random, row: dict[str, Any], a: int, b: int, c: int) -> dict[str, Any]:
    return row | {"expected_answer": str(a * b - c)}


_PLANTED = {
    "": lambda draw, row, a, b, c: row,
    "truncation": _cut,
    "tool": _tool,
    "extraction": _misread,
    "environment": _lost,
    "grader": _misjudged,
    "instruction": _declined,
    "arithmetic": _miscalculated,
    "knowledge": _misunderstood,
    "gold": _wrong_gold,
}
