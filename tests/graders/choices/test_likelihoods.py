# SPDX-License-Identifier: Apache-2.0
"""Which continuation is likeliest, as it is and for its length, and which is the right one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row

GRADER = plain_grader("loglikelihood", {})
TEXTS = [" yes", " no", " perhaps so"]


def grade(expected: Any, values: list[float], texts: list[str] = TEXTS, **more: Any) -> Row:
    score = GRADER.grade({"expected_answer": expected, "loglikelihoods": values, "continuations": texts, **more})
    return {"outcome": score.outcome, **score.fields}


@pytest.mark.parametrize(
    ("values", "letter", "acc", "acc_norm"),
    [
        ([-3.0, -2.0, -9.0], "B", True, False),
        ([-3.0, -2.0, -30.0], "B", True, False),
        ([-3.0, -1.9, -30.0], "B", True, True),
        ([-2.0, -2.0, -30.0], "A", False, False),
        ([-2.0, -3.0, -1.0], "C", False, False),
    ],
)
def test_the_likeliest_and_the_likeliest_for_its_length(
    values: list[float], letter: str, acc: bool, acc_norm: bool
) -> None:
    found = grade("no", values)
    assert found == {
        "outcome": "correct" if acc else "wrong",
        "predicted_answer": letter,
        "symbolic_correct": acc,
        "acc": acc,
        "acc_norm": acc_norm,
        "loglikelihood": values[1],
    }


@pytest.mark.parametrize(
    ("expected", "texts", "place"),
    [
        (2, TEXTS, 2),
        (0, TEXTS, 0),
        (3, TEXTS, None),
        (-1, TEXTS, None),
        (True, TEXTS, None),
        ("no ", TEXTS, 1),
        ("C", TEXTS, 2),
        ("D", TEXTS, None),
        ("c", TEXTS, None),
        ("", TEXTS, None),
        ("maybe", TEXTS, None),
        ("B", [" B", " A"], 0),
        ("A", [" A", "A "], 0),
        ("x", [" x", "x "], None),
        (7, ["5", "7"], None),
        ("7", ["5", "7"], 1),
        (None, TEXTS, None),
    ],
)
def test_the_right_one_is_named_by_place_text_or_letter(
    expected: Any, texts: list[str], place: int | None
) -> None:
    values = [-float(10 + at) for at in range(len(texts))]
    found = grade(expected, values, texts)
    assert found["loglikelihood"] == (None if place is None else values[place])
    assert found["outcome"] == ("unscored" if place is None else "correct" if place == 0 else "wrong")
    reply = GRADER.gold_reply({"expected_answer": expected, "continuations": texts})  # type: ignore[attr-defined]
    if place is None:
        assert reply is None
        return
    assert reply == {
        "loglikelihoods": [-1.0 if at == place else reply["loglikelihoods"][at] for at in range(len(texts))],
        "greedy": [at == place for at in range(len(texts))],
    }
    assert max(value for at, value in enumerate(reply["loglikelihoods"]) if at != place) < -100


def test_twenty_six_have_letters() -> None:
    texts = [f" text {at}" for at in range(28)]
    for likeliest, name in ((25, "Z"), (26, "26")):
        values = [0.0 if at == likeliest else -9.0 for at in range(28)]
        assert grade(0, values, texts)["predicted_answer"] == name


@pytest.mark.parametrize(
    ("greedy", "outcome", "answer", "right"),
    [
        ([True], "correct", "yes", True),
        ([False], "wrong", "another continuation", False),
        ([], "unscored", None, None),
        (None, "unscored", None, None),
    ],
)
def test_a_single_continuation_is_right_where_a_greedy_model_writes_it(
    greedy: list[bool] | None, outcome: str, answer: str | None, right: bool | None
) -> None:
    assert grade("x", [-2.5], [" yes"], greedy=greedy) == {
        "outcome": outcome,
        "predicted_answer": answer,
        "symbolic_correct": right,
        "acc": right,
        "acc_norm": None,
        "loglikelihood": -2.5,
    }


@pytest.mark.parametrize(("values", "texts"), [(None, TEXTS), ([-1.0], TEXTS), ([], []), ([-1.0], None)])
def test_what_the_solver_did_not_make_cannot_be_graded(values: Any, texts: Any) -> None:
    found = grade("no", values, texts)
    assert (found["outcome"], found["symbolic_correct"], found["acc"]) == ("unscored", None, None)
