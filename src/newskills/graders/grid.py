# SPDX-License-Identifier: Apache-2.0
"""Grids of digits (ARC, arXiv:1911.01547): every output grid must be reproduced cell by cell."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator

import msgspec

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

Grid = list[list[int]]

_RUN = re.compile(r"\[[\s\d,\[\]]*+")
_ROW = re.compile(r"[ \t|\[]*\d(?:[ \t,|]*\d)*[ \t|\],]*")
_LARGEST = 64
_DEPTH = 3


class GridGrader:
    """The last grids of the reply, one for each test input, in order; `attempts` of a record allows several each.

    `expected_answer` is a grid, or a list of grids. Fields written: `predicted_answer` (grids or null), `right_grids`
    (whether each wanted grid is right), `symbolic_correct` (whether all are).
    """

    name = "grid_match"
    version = "4"
    answer_keys = ("generation",)

    def gold_reply(self, record: Row) -> str:
        return json.dumps(record.get("expected_answer"))

    def same_replies(self, record: Row) -> list[str]:
        """Return two replies with the right grids: one by one as lists, and drawn in lines."""
        golds = _read_golds(record.get("expected_answer"))
        listed = "\n\n".join(f"Output:\n```\n{json.dumps(grid)}\n```" for grid in golds)
        drawn = "\n\n".join("\n".join(" ".join(map(str, line)) for line in grid) for grid in golds)
        return [listed, f"The grids are:\n\n{drawn}\n"]

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        golds = _read_golds(record.get("expected_answer"))
        if not golds:
            nothing: Row = {"predicted_answer": None, "right_grids": None, "symbolic_correct": None}
            return ungradable_score(stamp, "expected_answer is no grid of digits", nothing)
        all_grids = read_grids(visible_reply(str(record.get("generation") or "")) or "", len(golds))
        attempts = max(1, int(record.get("attempts") or 1))
        if len(all_grids) < len(golds) * attempts:
            attempts = 1
        if len(all_grids) < len(golds):
            missing: Row = {
                "predicted_answer": None,
                "right_grids": [False] * len(golds),
                "symbolic_correct": False,
            }
            return no_answer_score(stamp, record, missing)
        chosen = all_grids[-len(golds) * attempts :]
        right = [gold in chosen[place * attempts : (place + 1) * attempts] for place, gold in enumerate(golds)]
        correct = all(right)
        fields: Row = {"predicted_answer": chosen, "right_grids": right, "symbolic_correct": correct}
        why = "same grids" if correct else "another grid"
        return verdict_score(stamp, correct, fields, why)


def read_grids(text: str, wanted: int) -> list[Grid]:
    """Return the JSON grids (lists of rows) in a text, in order; where they are fewer than `wanted`, those drawn in
    lines."""
    listed = [grid for piece in _json_lists(text) for grid in _read_golds(piece)]
    if len(listed) >= wanted:
        return listed
    return list(_drawn_grids(text))


def _read_golds(value: object) -> list[Grid]:
    if (grid := _as_grid(value)) is not None:
        return [grid]
    several = [_as_grid(item) for item in value] if isinstance(value, list) else []
    if None in several:
        return []
    return [grid for grid in several if grid is not None]


def _json_lists(text: str) -> Iterator[object]:
    """Yield every outermost JSON list of numbers and lists, at most three deep."""
    for run in _RUN.finditer(text):
        depth = deepest = start = 0
        for at, char in enumerate(run.group()):
            if char == "[":
                if not depth:
                    start = at
                depth += 1
                deepest = max(deepest, depth)
            elif char == "]" and depth:
                depth -= 1
                if not depth and deepest <= _DEPTH:
                    with contextlib.suppress(msgspec.DecodeError):
                        yield msgspec.json.decode(run.group()[start : at + 1])
                if not depth:
                    deepest = 0


def _drawn_grids(text: str) -> Iterator[Grid]:
    rows: Grid = []
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        if _ROW.fullmatch(bare):
            digits = [int(char) for char in bare if char.isdecimal()]
        else:
            digits = []
        if rows and len(digits) != len(rows[0]):
            if (grid := _as_grid(rows)) is not None:
                yield grid
            rows = []
        if digits:
            rows.append(digits)


def _as_grid(value: object) -> Grid | None:
    """Return `value` where it is a rectangle of digits, else None."""
    if not isinstance(value, list) or not 0 < len(value) <= _LARGEST:
        return None
    width = len(value[0]) if isinstance(value[0], list) else 0
    for row in value:
        if not isinstance(row, list) or not 0 < len(row) == width <= _LARGEST:
            return None
        if not all(type(cell) is int and 0 <= cell <= 9 for cell in row):
            return None
    return value
