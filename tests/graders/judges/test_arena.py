# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row
from newskills.graders.judges.arena import arena_label, read_mark
from newskills.metrics import make_metric


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("My verdict: [[A>>B]]", "A>>B"),
        ("[[B>A]]", "A<B"),
        ("[[B>>A]]", "A<<B"),
        ("[[A=B]]", "A=B"),
        ("[[B=A]]", "A=B"),
        ("**[[A>B]]** and again [[A>B]]", "A>B"),
        ("First [[A>B]], no: [[B>A]]", "A<B"),
        ("[[a>b]] beats [A=B] and [B>>A]", "A>B"),
        ("**[B>A]**", "A<B"),
        ("<think>[[A>B]]</think>[[B>A]]", "A<B"),
        ("A is better", None),
        ("[[A>A]]", None),
        ("", None),
        (None, None),
    ],
)
def test_verdicts(text: str | None, label: str | None) -> None:
    assert arena_label(text) == label


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[[7]]", 7),
        ("[[1]] … [[9.5]]", 9.5),
        ("[[11]]", None),
        ("[[0]]", None),
        ("7", None),
        ("[7]", 7),
        ("As [2] says: [[8]]", 8),
        ('```json\n{"strengths": "As [2].", "weaknesses": "none", "score": "8"}\n```', 8),
        ('My analysis.\n{\n  "strengths": "[[3]]",\n  "score": 6.5\n}', 6.5),
        ('{"score": "[1~10]"}', None),
        ('{"score": "12"}', None),
        ('Its own "score": "8" is what it says', None),
    ],
)
def test_marks(text: str, value: float | None) -> None:
    assert read_mark(text) == value


def _graded(first: str, second: str, **more: object) -> Row:
    record: Row = {"judgement-gen-base": first, "judgement-base-gen": second, **more}
    score = plain_grader("arena", {}).grade(record)
    return {**record, **score.fields, "outcome": score.outcome, "outcome_cause": score.cause}


def test_a_game_without_a_verdict_is_left_out() -> None:
    one = _graded("[[A>B]]", "?")
    assert (one["arena_games"], one["arena_win"], one["outcome"]) == (["A>B", None], 1.0, "correct")
    none = _graded("?", "?")
    assert (none["outcome"], none["outcome_cause"]) == ("unscored", "judge")


def test_strong_verdicts_count_three_times() -> None:
    metric = make_metric("arena")
    metric.update([_graded("[[A>>B]]", "[[B>A]]")])
    metric.update([_graded("[[B>A]]", "[[A=B]]")])
    metric.update([_graded("?", "?")])
    number = metric.numbers()["pass@1"]["score"]
    assert number.value == pytest.approx(100 * (3 + 1 + 0 + 0.5) / 6)
    assert (number.n, number.unscored, number.method) == (2, 1, "bootstrap")
    found = metric.metrics()["pass@1"]
    assert found["invalid_scores"] == 2
    assert found["elo"] == pytest.approx(400 * math.log10(0.75 / 0.25))
    assert metric.ledger().unscored == 1


def test_several_samples() -> None:
    metric = make_metric("arena")
    metric.update([_graded("[[B>A]]", "[[B>A]]"), _graded("[[A>B]]", "[[A>>B]]")])
    modes = metric.metrics()
    assert list(modes) == ["pass@1", "pass@1[avg-of-2]", "pass@2"]
    assert modes["pass@1"]["score"] == 50
    assert modes["pass@1[avg-of-2]"]["score"] == pytest.approx(100 * 2 / 6)
    assert modes["pass@2"]["score"] == 100


def test_an_answer_that_never_came_loses() -> None:
    metric = make_metric("arena")
    metric.update([metric.incorrect(_graded("[[A>B]]", "[[B>A]]"))])
    assert metric.metrics()["pass@1"]["score"] == 0


def test_ratings() -> None:
    grader, metric = plain_grader("rating", {}), make_metric("mt-bench")
    for texts in (("[[10]]", "[[6]]"), ("[[4]]", "[[4]]")):
        record: Row = {f"judgement-turn-{turn}": text for turn, text in enumerate(texts, 1)}
        metric.update([{**record, **grader.grade(record).fields}])
    found = metric.metrics()["pass@1"]
    assert (found["rating"], found["turn_1"], found["turn_2"]) == pytest.approx((6, 7, 5))
    assert found["rating_interval"][0] > 0
    assert grader.grade({"judgement-turn-1": "[[7]]", "judgement-turn-2": "-"}).cause == "judge"
    assert grader.grade({"judgement": "[[7]]"}).fields["ratings"] == {"all": 7.0}


def test_emotions() -> None:
    grader, metric = plain_grader("eq_bench", {}), make_metric("eq_bench")
    emotions = {"Anger": 8.0, "Joy": 0.0, "Hope": 3.0, "Shame": 5.0}
    right = "**Anger: 8**\nJoy: 0\n- Hope: 3.9\nShame: 5"
    perfect = grader.grade({"generation": right, "emotions": emotions})
    assert perfect.fields["eq_score"] == 10
    near = grader.grade({"generation": right.replace("8", "6"), "emotions": emotions})
    assert 9 < near.fields["eq_score"] < 10
    far = grader.grade({"generation": "Anger: 0, Joy: 10, Hope: 10, Shame: 0", "emotions": emotions})
    assert far.fields["eq_score"] < 0
    revised = grader.grade(
        {"generation": f"Anger: 1\nJoy: 1\nHope: 1\nShame: 1\n\nRevised:\n{right}", "emotions": emotions}
    )
    assert revised.fields["eq_score"] == 10
    for unread in (right.replace("Joy:", "joy:"), right.replace("Joy:", "**Joy**:"), f"{right}\nFear: 2"):
        assert grader.grade({"generation": unread, "emotions": emotions}).outcome == "no_answer"
    missing = grader.grade({"generation": "Anger: 8", "emotions": emotions})
    assert (missing.outcome, missing.fields["parseable"]) == ("no_answer", False)
    for score in (perfect, missing):
        metric.update([{**score.fields, "outcome": score.outcome, "outcome_cause": score.cause}])
    found = metric.metrics()["pass@1"]
    assert (found["eq_bench_score"], found["parseable"]) == (100, 50)
