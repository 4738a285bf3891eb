# SPDX-License-Identifier: Apache-2.0
"""Small rules of graders, at their borders: how many options there are, which fields are needed, what is a name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graders.instructions.test_checks import verdict
from tests.graders.plain import plain_grader

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.graders import make_grader
from newskills.graders.math import equal
from newskills.graders.multichoice import count_choices
from newskills.graders.reading.record_faults import missing_answer
from newskills_math.phrases import changes_value


@pytest.mark.parametrize(
    ("record", "count"),
    [
        ({"A": "x", "B": "y"}, 2),
        ({"A": "x"}, 26),
        ({"A": "x", "C": "y"}, 26),
        ({"options": ["x", "y"]}, 2),
        ({"options": ["x"]}, 26),
        ({"options": {"A": "x", "B": "y", "C": "z"}}, 3),
        ({"options": "A. x\nB. y"}, 2),
        ({"options": "A. x"}, 26),
        ({"A": "x", "options": ["x", "y", "z"]}, 3),
        ({}, 26),
    ],
)
def test_how_many_options_a_record_has(record: Row, count: int) -> None:
    assert count_choices(record) == count


def test_a_pattern_that_is_none_is_a_mistake_of_the_settings() -> None:
    record = {"generation": "It is (B).", "expected_answer": "B", "extract_regex": "("}
    with pytest.raises(ConfigError, match=r"extract_regex '\(' is not a regular expression"):
        plain_grader("multichoice", {"extract_regex": "("}).grade({**record, "extract_regex": "("})


@pytest.mark.parametrize(
    ("name", "record", "missing"),
    [
        ("exact", {"id": 1}, "`generation`"),
        ("exact", {"generation": None}, ""),
        ("reasoning_gym", {"id": 1}, "`generation` and no `predicted_answer`"),
        ("reasoning_gym", {"predicted_answer": "x"}, ""),
    ],
)
def test_fields_that_a_grader_needs_one_of(name: str, record: Row, missing: str) -> None:
    assert missing_answer(make_grader(name, {}), record) == missing


@pytest.mark.parametrize(
    ("answer", "outcome"), [("north-west", "correct"), ("NORTH-WEST", "correct"), ("north-east", "wrong")]
)
def test_words_of_a_data_question_are_compared_without_regard_to_case(answer: str, outcome: str) -> None:
    record = {"expected_answer": "North-West", "generation": f"\\boxed{{\\text{{{answer}}}}}"}
    assert plain_grader("dsbench", {}).grade(record).outcome == outcome


@pytest.mark.parametrize(
    ("text", "count", "kept"),
    [
        ("a *** b", 2, True),
        ("a *** b *** c", 3, True),
        ("a *** b *** c", 2, False),
        ("*** a *** b ***", 2, True),
        ("a *** *** b", 2, False),
        ("a *** *** b", 3, False),
    ],
)
def test_paragraphs_between_stars(text: str, count: int, kept: bool) -> None:
    """An empty one may stand at either end, and nowhere else."""
    args: dict[str, Any] = {"num_paragraphs": count}
    assert verdict("if", "length_constraints:number_paragraphs", args, text)[0] is kept


@pytest.mark.parametrize(
    ("before", "behind", "changed"),
    [
        ("", "tens of apples", True),
        ("", "dozen", True),
        ("", "apples", False),
        ("", "is too big", True),
        ("half of", "", True),
        ("the answer is", "", False),
    ],
)
def test_words_around_a_value_that_make_it_another(before: str, behind: str, changed: bool) -> None:
    assert changes_value(before, behind) is changed


@pytest.mark.parametrize(
    ("pred", "gold", "same"),
    [
        (r"\triangle ABC \cong \triangle DEF", r"\triangle BCA \cong \triangle EFD", True),
        (r"\triangle ABC \cong \triangle DEF", r"\triangle ABC \cong \triangle EDF", False),
        (r"\max = 3+2 = 5", "5", True),
        (r"\max = 3+2 = 6", "5", False),
        (r"\max = 3+2 = 6", "6", False),
        (r"\max < 5", "5", False),
    ],
)
def test_figures_and_chains(pred: str, gold: str, same: bool) -> None:
    assert equal(pred, gold)[0] is same
