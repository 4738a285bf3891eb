# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.graders.longfact import f1_at
from newskills.metrics import make_metric


def record(*verdicts: str | None, text: str = "An answer.", **more: Any) -> Row:
    claims: list[Row] = [
        {"claim": f"c{n}", "verdict": verdict, "searches": []} for n, verdict in enumerate(verdicts)
    ]
    return {"generation": text, "claims": claims, **more}


@pytest.mark.parametrize(
    ("row", "outcome", "cause", "value"),
    [
        (record(*["supported"] * 64), "correct", None, 1.0),
        (record(*["supported"] * 32), "correct", None, pytest.approx(2 / 3)),
        (record(*["supported"] * 32, *["not_supported"] * 32), "wrong", "model", 0.5),
        (record("supported", "irrelevant"), "correct", None, f1_at(1, 0, 64)),
        (record("irrelevant"), "wrong", "model", 0.0),
        (record(text=" "), "no_answer", "model", None),
        (record(text="", finish_reason="length"), "no_answer", "truncation", None),
        (record("supported", None), "unscored", "judge", None),
        (record(*["supported"] * 64, None), "correct", None, 1.0),
        ({"generation": "x", "claims": None}, "unscored", "judge", None),
        ({"generation": "x"}, "unscored", "judge", None),
        ({"generation": "x", "claims": ["c", {"verdict": []}]}, "unscored", "judge", None),
    ],
)
def test_outcomes(row: Row, outcome: str, cause: str | None, value: float | None) -> None:
    score = plain_grader("longfact", {}).grade(row)
    assert (score.outcome, score.cause, score.value) == (outcome, cause, value)


def test_f1_has_both_parts() -> None:
    assert f1_at(0, 5, 64) == 0
    assert f1_at(128, 0, 64) == 1
    assert f1_at(64, 64, 64) == pytest.approx(2 / 3)
    assert f1_at(64, 0, 178) < f1_at(64, 0, 64)


def test_the_metric_averages_what_was_rated() -> None:
    grader, metric = plain_grader("longfact", {}), make_metric("longfact")
    for row in (record(*["supported"] * 64), record("not_supported"), record(None)):
        score = grader.grade(row)
        metric.update([{**row, **score.fields, "outcome": score.outcome, "outcome_cause": score.cause}])
    found = metric.metrics()["pass@1"]
    assert (found["precision"], found["f1_at_64"]) == (50.0, 50.0)
    assert metric.ledger().unscored == 1
    assert metric.incorrect(record("supported"))["f1_at_64"] == 0


def test_a_share_is_one_at_most() -> None:
    plain_grader("longfact", {"most_unrated": 1})
    with pytest.raises(ConfigError, match="most_unrated"):
        plain_grader("longfact", {"most_unrated": 1.5})
