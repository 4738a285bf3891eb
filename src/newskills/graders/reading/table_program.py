# SPDX-License-Identifier: Apache-2.0
"""Small programs over a table and numbers, run step by step (FinQA: Chen et al. 2021, arXiv:2109.00122, §3.2)."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

Value = float | str
"""A number, or "yes" or "no"."""
Table = Sequence[Sequence[str]]
"""Rows; the first cell of each is its name."""

_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "exp": operator.pow,
}
_ROWS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "table_max": max,
    "table_min": min,
    "table_sum": sum,
    "table_average": lambda numbers: sum(numbers) / len(numbers),
}
_STEP = re.compile(rf"\b({'|'.join([*_ARITHMETIC, 'greater', *_ROWS])})\(([^()\n]{{1,200}})\)")
_DIGITS = 5


class TableProgramGrader:
    """Runs the last line of steps in the reply, such as `subtract(5829, 5735), divide(#0, 5735)`.

    `expected_answer` is the result that the right program has, to five digits, or "yes" or "no"; `table` has the rows.
    Fields written: `predicted_program`, `predicted_answer`, `symbolic_correct` (execution accuracy). A program that
    cannot be run is wrong.
    """

    name = "table_program"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str | None:
        if record.get("program") is None:
            return None
        return f"Program: {record['program']}"

    def same_replies(self, record: Row) -> list[str]:
        """Return the right program in code, and in bold after other lines."""
        program = record.get("program")
        if program is None:
            return []
        return [f"`{program}`", f"First the change.\n\nProgram: **{program}**\n"]

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        gold, nothing = record.get("expected_answer"), dict.fromkeys(("predicted_program", "predicted_answer"))
        if gold is None:
            return ungradable_score(
                stamp, "the record has no expected_answer", {**nothing, "symbolic_correct": None}
            )
        steps = last_program(visible_reply(str(record.get("generation") or "")))
        if not steps:
            return no_answer_score(stamp, record, {**nothing, "symbolic_correct": False})
        result = execute_steps(steps, record.get("table") or ())
        program = ", ".join(f"{name}({arguments})" for name, arguments in steps)
        correct = result is not None and same_result(result, str(gold))
        predicted_answer = None if result is None else str(result)
        fields: Row = {
            "predicted_program": program,
            "predicted_answer": predicted_answer,
            "symbolic_correct": correct,
        }
        why = "cannot be run" if result is None else f"result {result}"
        return verdict_score(stamp, correct, fields, why)


def last_program(text: str | None) -> list[tuple[str, str]]:
    """Return (operation, arguments) of each step in the last line that has any."""
    lines = [steps for line in (text or "").splitlines() if (steps := _STEP.findall(line))]
    if lines:
        return lines[-1]
    return []


def execute_steps(steps: Sequence[tuple[str, str]], table: Table) -> Value | None:
    """Return the result of the last step; None where a step cannot be run."""
    named = {str(row[0]): [str(cell) for cell in row[1:]] for row in table if row}
    results: list[Value] = []
    for name, arguments in steps:
        result = _execute_step(name, [part.strip() for part in arguments.split(",")], results, named)
        if result is None:
            return None
        results.append(result)
    last = results[-1]
    if isinstance(last, str):
        return last
    return round(last, _DIGITS)


def same_result(result: Value, gold: str) -> bool:
    """Return whether the result is the right one: equal to five digits, or the same word."""
    if isinstance(result, str):
        return result == gold
    try:
        return result == float(gold)
    except ValueError:
        return False


def _execute_step(
    name: str, parts: list[str], results: Sequence[Value], table: Mapping[str, list[str]]
) -> Value | None:
    if name in _ROWS:
        numbers = [_read_number(_cell_text(cell)) for cell in table.get(", ".join(parts[:-1]) or parts[0], ())]
        present = [number for number in numbers if number is not None]
        if present and len(present) == len(numbers):
            return _ROWS[name](present)
        return None
    values = [_argument_value(part, results) for part in parts]
    if len(values) != 2 or not isinstance(values[0], float) or not isinstance(values[1], float):
        return None
    if name == "greater":
        if values[0] > values[1]:
            return "yes"
        return "no"
    try:
        result = _ARITHMETIC[name](values[0], values[1])
    except (ZeroDivisionError, OverflowError):
        return None
    if isinstance(result, int | float) and math.isfinite(result):
        return float(result)
    return None


def _argument_value(text: str, results: Sequence[Value]) -> Value | None:
    """Return the value of an argument: `#0` is the result of the first step, `const_100` is 100, `const_m1` is −1."""
    if text.startswith("#"):
        place = text[1:]
        if place.isdecimal() and int(place[:4]) < len(results):
            return results[int(place)]
        return None
    return _read_number(text)


def _cell_text(text: str) -> str:
    return text.replace("$", "").strip().partition("(")[0].strip()


def _read_number(text: str) -> float | None:
    text = text.replace(",", "").removeprefix("const_").strip()
    percent = text.endswith("%")
    try:
        figure = "-1" if text == "m1" else text.removesuffix("%")
        number = float(figure)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if percent:
        return number / 100
    return number
