# SPDX-License-Identifier: Apache-2.0
"""Logic-grid puzzles: the table in the last JSON object of a reply, cell by cell (ZebraLogic, arXiv:2502.01100)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply


class LogicGridGrader:
    """`solution` of the record, `{"header": ["House", …], "rows": [["1", …], …]}`, against `{"House 1": {…}, …}`.

    Fields written: `correct_cells`, `total_cells`, `is_correct` (every cell). Case and blanks around a cell do not
    count; of a list in a cell, its first item does. Numbers are read as their text, where the authors' program stops.
    """

    name = "logic_grid"
    version = "2"
    answer_keys = ("generation",)

    def gold_reply(self, record: Row) -> str | None:
        cells = _solution_cells(record.get("solution"))
        if cells is None:
            return None
        return json.dumps({"solution": _houses_of(cells)})

    def same_replies(self, record: Row) -> list[str]:
        """Return the solution in a code block after other objects, in capitals, with blanks."""
        cells = _solution_cells(record.get("solution"))
        if cells is None:
            return []
        capitals = {cell: f" {value.upper()} " for cell, value in cells.items()}
        solution = {"reasoning": "…", "solution": _houses_of(capitals)}
        return [f'First {{"draft": 1}}, then\n```json\n{json.dumps(solution, indent=2)}\n```']

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        cells = _solution_cells(record.get("solution"))
        if cells is None:
            nothing: Row = dict.fromkeys(("correct_cells", "total_cells", "is_correct"))
            return ungradable_score(stamp, "the record has no solution with header and rows", nothing)
        table = _answered_solution(visible_reply(str(record.get("generation") or "")))
        if table is None:
            return no_answer_score(
                stamp, record, {"correct_cells": 0, "total_cells": len(cells), "is_correct": False}
            )
        right = sum(
            _cell_text(table, house, column) == value.strip().lower() for (house, column), value in cells.items()
        )
        fields: Row = {"correct_cells": right, "total_cells": len(cells), "is_correct": right == len(cells)}
        return verdict_score(
            stamp, right == len(cells), fields, f"{right} of {len(cells)} cells", right / len(cells)
        )


def _solution_cells(solution: object) -> dict[tuple[str, str], str] | None:
    """Return (house, column) → value; None where it is no table."""
    if not isinstance(solution, Mapping):
        return None
    header, rows = solution.get("header"), solution.get("rows")
    if not header or not rows or any(len(row) != len(header) for row in rows):
        return None
    return {
        (f"House {number}", str(column)): str(value)
        for number, row in enumerate(rows, 1)
        for column, value in zip(header[1:], row[1:], strict=True)
    }


def _houses_of(cells: Mapping[tuple[str, str], str]) -> dict[str, dict[str, str]]:
    houses: dict[str, dict[str, str]] = {}
    for (house, column), value in cells.items():
        houses.setdefault(house, {})[column] = value
    return houses


def _answered_solution(text: str | None) -> Mapping[str, object] | None:
    """Return the `solution` of the last whole JSON object."""
    if not text or (last := _last_object(text)) is None:
        return None
    try:
        value = json.loads(last.replace("\n", ""))
    except (ValueError, RecursionError):
        return None
    table = value.get("solution") if isinstance(value, dict) else None
    if isinstance(table, Mapping):
        return table
    return None


def _last_object(text: str) -> str | None:
    """Return the last stretch between braces that match; a brace that opens and never closes takes all after it
    along."""
    depth, start, last = 0, 0, None
    for at, character in enumerate(text):
        if character == "{":
            if depth == 0:
                start = at
            depth += 1
        elif character == "}" and depth:
            depth -= 1
            if depth == 0:
                last = text[start : at + 1]
    return last


def _cell_text(table: Mapping[str, object], house: str, column: str) -> str | None:
    row = table.get(house)
    value = row.get(column) if isinstance(row, Mapping) else None
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str):
        return value.strip().lower()
    if isinstance(value, int | float):
        return str(value)
    return None
