# SPDX-License-Identifier: Apache-2.0
"""A reply that says nothing has no answer and earns nothing: the fields that each grader writes then, one by one."""

from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row

NONE: Row = {"predicted_answer": None}
WRONG: Row = {**NONE, "symbolic_correct": False}
GRID = [[1, 2], [3, 4]]

CASES: list[tuple[str, Row, Row, Row]] = [
    ("exact", {}, {"expected_answer": "x"}, WRONG),
    ("literal", {}, {"expected_answer": "x"}, WRONG),
    ("gaia", {}, {"expected_answer": "x"}, WRONG),
    ("dsbench", {}, {"expected_answer": "x"}, WRONG),
    ("option_set", {}, {"expected_answer": "AC"}, WRONG),
    ("multichoice", {}, {"expected_answer": "A"}, WRONG),
    ("table_program", {}, {"expected_answer": "3", "program": "add(1, 2)"}, {**WRONG, "predicted_program": None}),
    ("memory", {}, {"expected_answer": "x", "question_type": "1"}, {"f1": 0.0, "symbolic_correct": 0.0}),
    ("long_text", {}, {"expected_answer": "x", "measure": "f1"}, {**NONE, "score": 0.0}),
    ("ruler", {}, {"expected_answer": ["x"]}, {**NONE, "is_correct": 0.0}),
    ("ruler2", {}, {"expected_answer": ["x"]}, {**NONE, "is_correct": 0.0, "soft_score": 0.0}),
    ("mrcr", {}, {"expected_answer": "abcx", "random_string_to_prepend": "abc"}, {**NONE, "seq_match_ratio": 0.0}),
    ("graphwalks", {}, {"expected_answer": ["x"]}, {**NONE, "f1": 0.0, "parse_failed": True}),
    ("eq_bench", {}, {"expected_answer": "x", "emotions": {"joy": 3}}, {**NONE, "eq_score": None, "parseable": False}),
    ("critpt", {}, {}, {**NONE, "generated_code": "", "is_correct": False}),
    ("hotpotqa", {"supporting_facts": False}, {"expected_answer": "Rome"}, {
        **NONE, "answer_em": 0.0, "answer_f1": 0.0, "is_correct": False, "is_correct_strict": False, "reliable": True,
    }),
    ("logic_grid", {}, {"solution": {"header": ["House", "Name"], "rows": [["1", "Ann"], ["2", "Bob"]]}}, {
        "correct_cells": 0, "total_cells": 2, "is_correct": False,
    }),
    ("reasoning_gym", {}, {"metadata": {"source_dataset": "leg_counting"}, "answer": "4", "question": "?"}, {
        **WRONG, "score": 0.0,
    }),
]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "record", "fields"), CASES)
@pytest.mark.parametrize(
    ("generation", "finish", "cause"),
    [("", "stop", "model"), ("", "length", "truncation"), ("<think>It is x, AC, Rome, 4", "stop", "truncation")],
)
def test_nothing_earns_nothing(
    name: str, config: Row, record: Row, fields: Row, generation: str, finish: str, cause: str
) -> None:
    if name == "reasoning_gym":
        pytest.importorskip("reasoning_gym")
    score = plain_grader(name, config).grade({**record, "generation": generation, "finish_reason": finish})
    assert (score.outcome, score.cause) == ("no_answer", cause)
    assert score.fields == fields
    assert not score.value


@pytest.mark.parametrize(
    "name", ["exact", "literal", "gaia", "dsbench", "option_set", "ruler", "memory", "long_text"]
)
def test_without_a_right_answer_nothing_can_be_graded(name: str) -> None:
    score = plain_grader(name, {}).grade({"generation": "x", "measure": "f1"})
    assert (score.outcome, score.value) == ("unscored", None)
    assert not any(score.fields.values())
