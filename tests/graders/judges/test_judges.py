# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row
from newskills.metrics import make_metric

YES, NO = "Judgement: Yes", "Judgement: No"


def _judged(said: str, expected: str, **more: object) -> Row:
    record: Row = {"judgement": said, "expected_judgement": expected, **more}
    score = plain_grader("answer-judgement", {}).grade(record)
    return {**record, **score.fields, "outcome": score.outcome, "outcome_cause": score.cause}


@pytest.mark.parametrize(
    ("said", "expected", "kind", "outcome"),
    [
        (YES, YES, "true_positive", "correct"),
        (NO, NO, "true_negative", "correct"),
        (f"Sound.\n**{YES}**", NO, "false_positive", "wrong"),
        (f"<think>{YES}</think>{NO}", YES, "false_negative", "wrong"),
        ("It depends.", YES, "invalid", "no_answer"),
        (f"<think>{YES}", YES, "invalid", "no_answer"),
        (YES, "", None, "unscored"),
    ],
)
def test_kinds(said: str, expected: str, kind: str | None, outcome: str) -> None:
    record = _judged(said, expected)
    assert (record["judgement_kind"], record["outcome"]) == (kind, outcome)


def test_judgements_in_numbers() -> None:
    metric = make_metric("answer-judgement")
    for said, expected in ((YES, YES), (YES, YES), (YES, NO), (NO, YES), (NO, NO), ("?", YES)):
        metric.update([_judged(said, expected)])
    found = metric.metrics()["pass@1"]
    shares = {name: 100 / 6 * count for name, count in (("correct_judgements", 3), ("false_positives", 1))}
    shares |= dict.fromkeys(("false_negatives", "invalid_judgements"), 100 / 6)
    shares |= {"precision": 100 * 2 / 3, "recall": 50, "f1": 100 * 4 / 7}
    assert {name: found[name] for name in shares} == pytest.approx(shares)


@pytest.mark.parametrize(
    ("said", "mark", "exact", "same", "off"),
    [
        ("Correct.", "correct", True, True, 0),
        ("It is **almost**", "almost", False, True, 1),
        ("partial", "partial", False, False, 6),
        ("not correct, rather incorrect!", "incorrect", False, False, 7),
        ("the proof is correct, I think", None, False, False, None),
        ("<think>correct</think>", None, False, False, None),
    ],
)
def test_marks(said: str, mark: str | None, exact: bool, same: bool, off: int | None) -> None:
    fields = plain_grader("gradingbench", {}).grade({"generation": said, "expected_answer": "Correct"}).fields
    assert (fields["predicted_answer"], fields["exact"], fields["binarized"], fields["points_off"]) == (
        mark,
        exact,
        same,
        off,
    )


def test_marks_in_numbers() -> None:
    metric = make_metric("gradingbench")
    for said, expected in (
        ("almost", "correct"),
        ("correct", "correct"),
        ("partial", "incorrect"),
        ("?", "correct"),
    ):
        record: Row = {"generation": said, "expected_answer": expected}
        metric.update([{**record, **plain_grader("gradingbench", {}).grade(record).fields}])
    found = metric.metrics()["pass@1"]
    assert (found["exact_accuracy"], found["binarized_accuracy"], found["mae"]) == pytest.approx((25, 75, 2 / 3))
    assert (
        plain_grader("gradingbench", {}).grade({"generation": "x", "expected_answer": "7"}).outcome == "unscored"
    )
