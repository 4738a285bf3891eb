# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row
from newskills.metrics import make_metric


@pytest.mark.parametrize(
    ("text", "outcome", "score"),
    [
        ("0.8312", "correct", 0.8312),
        ("-0.2", "wrong", -0.2),
        ("1.02", "correct", 1.02),
        ("nan", "unscored", None),
        ("1e999", "unscored", None),
        ("", "unscored", None),
        (None, "unscored", None),
        ("Judgement: Yes", "unscored", None),
    ],
)
def test_comet(text: str | None, outcome: str, score: float | None) -> None:
    found = plain_grader("comet", {}).grade({"judgement": text, "generation": "Die Katze"})
    assert (found.outcome, found.fields["comet"]) == (outcome, score)
    assert found.cause == ("judge" if outcome == "unscored" else None if outcome == "correct" else "model")


@pytest.mark.parametrize(
    ("text", "more", "outcome", "letter"),
    [
        ("[0.1, 0.9, 0.3]", {}, "correct", "B"),
        ("[0.95, 0.9]", {}, "wrong", "A"),
        ("[0.9]", {}, "unscored", None),
        ('["a", 0.9]', {}, "unscored", None),
        ("[" * 100_000, {}, "unscored", None),
        ("{}", {}, "unscored", None),
        ("[0.1, 0.9]", {"generation": " "}, "no_answer", None),
        ("[0.1, 0.9]", {"expected_answer": "dog"}, "unscored", None),
        ("[0.1, 0.9]", {"expected_answer": ""}, "unscored", None),
    ],
)
def test_the_nearest_option(text: str, more: Row, outcome: str, letter: str | None) -> None:
    record = {"judgement": text, "generation": "The second.", "expected_answer": "B", **more}
    found = plain_grader("nvembed", {}).grade(record)
    assert (found.outcome, found.fields["predicted_answer"]) == (outcome, letter)


def segment(comet: float | None, target: str = "de") -> Row:
    row: Row = {"source_language": "en", "target_language": target, "bleu_counts": [4, 4, 4, 3, 2, 1, 4, 3, 2, 1]}
    return row | {"chrf_counts": [1, 1, 1] * 6, "sentence_chrf": 1.0, "comet": comet, "judgement": "…"}


def test_comet_of_a_corpus() -> None:
    metric = make_metric("translation")
    for comet, target in ((0.9, "de"), (0.7, "de"), (0.5, "fr")):
        metric.update([segment(comet, target)])
    modes = metric.metrics()
    assert modes["en->de"]["comet"] == pytest.approx(80.0)
    assert modes["xx->xx"]["comet"] == pytest.approx(65.0)
    assert modes["xx->xx"]["bleu"] == pytest.approx(100.0)
    assert metric.incorrect(segment(0.9))["comet"] == 0.0
    plain = make_metric("translation")
    plain.update([{key: value for key, value in segment(None).items() if key not in ("comet", "judgement")}])
    assert "comet" not in plain.metrics()["en->de"]


def test_comet_of_speech_beside_bleu() -> None:
    metric = make_metric("audio")
    metric.update(
        [{"is_correct": True, "comet": 0.8, "judgement": "0.8", "bleu_counts": segment(1.0)["bleu_counts"]}]
    )
    numbers = metric.metrics()["pass@1"]
    assert (numbers["comet"], numbers["success_rate"]) == (pytest.approx(80.0), 100.0)
