# SPDX-License-Identifier: Apache-2.0
"""Tables of logic-grid puzzles, cell by cell."""

from __future__ import annotations

import json

import pytest

from newskills.base.records import Row
from newskills.graders.logic_grid import LogicGridGrader
from newskills.metrics import make_metric

SOLUTION = {"header": ["House", "Name", "Pet"], "rows": [["1", "Ann", "cat"], ["2", "Bo", "dog"]]}
GRADER = LogicGridGrader()


def graded(reply: str) -> Row:
    score = GRADER.grade({"solution": SOLUTION, "generation": reply})
    return {**score.fields, "outcome": score.outcome}


def table(**houses: object) -> str:
    return json.dumps({"solution": {name.replace("_", " "): cells for name, cells in houses.items()}})


RIGHT = {"House_1": {"Name": "Ann", "Pet": "cat"}, "House_2": {"Name": "Bo", "Pet": "dog"}}


@pytest.mark.parametrize(
    ("reply", "cells", "outcome"),
    [
        (table(**RIGHT), 4, "correct"),
        (f"Thus:\n```json\n{table(**RIGHT)}\n```\nDone.", 4, "correct"),
        (table(House_1={"Name": " ANN ", "Pet": "Cat"}, House_2={"Name": ["Bo"], "Pet": "dog"}), 4, "correct"),
        (table(House_1={"Name": "Ann", "Pet": "dog"}, House_2={"Name": "Bo", "Pet": "cat"}), 2, "wrong"),
        (table(House_1={"Name": "Ann"}), 1, "wrong"),
        (table(House_1={"Name": None, "Pet": 7}, House_2="Bo"), 0, "wrong"),
        (table(**RIGHT) + ' {"note": "done"}', 0, "no_answer"),
        ("House 1: Ann, cat", 0, "no_answer"),
        ('{"solution": [1]}', 0, "no_answer"),
        ("{" * 5_000, 0, "no_answer"),
        ("<think>" + table(**RIGHT), 0, "no_answer"),
    ],
)
def test_cells(reply: str, cells: int, outcome: str) -> None:
    result = graded(reply)
    assert (result["correct_cells"], result["total_cells"], result["outcome"]) == (cells, 4, outcome)
    assert result["is_correct"] == (outcome == "correct")


def test_a_row_without_a_solution_cannot_be_graded() -> None:
    assert GRADER.grade({"generation": "x"}).outcome == "unscored"


def test_cells_are_counted_over_all_puzzles() -> None:
    metric = make_metric("logic_grid")
    for right, total in ((4, 4), (3, 6), (0, 10)):
        metric.update([{"is_correct": right == total, "correct_cells": right, "total_cells": total}])
    values = {name: number.value for name, number in metric.numbers()["pass@1"].items()}
    assert values["puzzle_accuracy"] == pytest.approx(100 / 3)
    assert values["cell_accuracy"] == pytest.approx(35.0), "7 of 20"
