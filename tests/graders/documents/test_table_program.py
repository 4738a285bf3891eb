# SPDX-License-Identifier: Apache-2.0
"""Programs over a table, run by hand and by machine."""

from __future__ import annotations

import pytest

from newskills.graders.reading.table_program import TableProgramGrader, execute_steps, last_program

TABLE = [
    ["", "2020", "2019"],
    ["sales", "$ 5,829", "$ 5,735"],
    ["margin, net", "12.5% ( note )", "10%"],
    ["x", "n/a", "1"],
]


@pytest.mark.parametrize(
    ("program", "result"),
    [
        ("subtract(5829, 5735), divide(#0, 5735)", 0.01639),
        ("add(12%, const_m1)", -0.88),
        ("multiply(const_1000, 0.5)", 500.0),
        ("exp(2, 10)", 1024.0),
        ("greater(1, 2)", "no"),
        ("table_sum(sales, none)", 11564.0),
        ("table_max(sales, none), divide(#0, 2)", 2914.5),
        ("table_average(margin, net, none)", 0.1125),
        ("divide(1, 0)", None),
        ("exp(9, 99999)", None),
        ("exp(-8, 0.5)", None),
        ("add(#0, 1)", None),
        ("add(#99999999999999999999, 1)", None),
        ("add(1, sales)", None),
        ("add(1, 2, 3)", None),
        ("greater(2, 1), add(#0, 1)", None),
        ("table_sum(x, none)", None),
        ("table_sum(profit, none)", None),
        ("add(nan, 1)", None),
    ],
)
def test_results(program: str, result: float | str | None) -> None:
    assert execute_steps(last_program(program), TABLE) == result


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("Program: subtract(5829, 5735)", "correct"),
        ("add(1, 2) is wrong.\n**Program: subtract(5,829 , 5735)**", "wrong"),
        ("subtract(5829, 5735)\nThat is 94.", "correct"),
        ("Program: subtract(5735, 5829)", "wrong"),
        ("94", "no_answer"),
        ("eval(94)", "no_answer"),
        ("", "no_answer"),
    ],
)
def test_outcomes(reply: str, outcome: str) -> None:
    assert (
        TableProgramGrader().grade({"expected_answer": "94.0", "table": TABLE, "generation": reply}).outcome
        == outcome
    )


def test_a_row_without_an_answer_cannot_be_graded() -> None:
    assert TableProgramGrader().grade({"generation": "add(1, 1)"}).outcome == "unscored"
