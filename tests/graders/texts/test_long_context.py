# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.metrics import make_metric

NODES = ["a1", "b2", "c3"]


@pytest.mark.parametrize(
    ("said", "match", "share"),
    [
        ("The numbers are 12 and 34.", "all", 1.0),
        ("The number is 12.", "all", 0.5),
        ("The number is 12.", "part", 1.0),
        ("ROME", "part", 0.0),
        ("<think>12 and 34</think> I do not know", "all", 0.0),
        ("12\x0034", "all", 1.0),
    ],
)
def test_ruler(said: str, match: str, share: float) -> None:
    record = {"generation": said, "expected_answer": ["12", "34"]}
    assert plain_grader("ruler", {"match_type": match}).grade(record).fields["is_correct"] == share


def test_ruler_without_answers() -> None:
    grader = plain_grader("ruler", {})
    assert grader.grade({"generation": "x", "expected_answer": []}).outcome == "unscored"
    assert grader.grade({"generation": " ", "expected_answer": ["x"]}).outcome == "no_answer"
    assert grader.grade({"generation": "Rome it is", "expected_answer": "ROME"}).outcome == "correct"


def test_ruler2_has_soft_scores() -> None:
    record = {"generation": "It was the red house there.", "expected_answer": ["the red horse"]}
    score = plain_grader("ruler2", {}).grade(record)
    assert (score.fields["is_correct"], score.fields["soft_score"]) == (0, pytest.approx(2 / 3))
    exact = plain_grader("ruler2", {}).grade({**record, "generation": "So: the red horse"})
    assert (exact.outcome, exact.fields["soft_score"]) == ("correct", 1)


@pytest.mark.parametrize(
    ("said", "low", "high"),
    [
        ("XyZa poem", 1, 1),
        ("a poem", 0, 0),
        ("XyZa poen", 0.8, 0.99),
        ("XyZ", 0, 0),
        (" XyZa poem", 0, 0),
        ("XyZa poem\n", 0.8, 0.99),
        ("<think>which one?</think>\n\nXyZa poem", 1, 1),
        ("Here: XyZa poem", 0, 0),
    ],
)
def test_mrcr(said: str, low: float, high: float) -> None:
    record = {"generation": said, "expected_answer": "XyZa poem", "random_string_to_prepend": "XyZ"}
    score = plain_grader("mrcr", {}).grade(record)
    assert low <= score.fields["seq_match_ratio"] <= high
    assert (score.outcome == "correct") == (low == 1)


@pytest.mark.parametrize(
    ("said", "f1", "failed"),
    [
        ("So it is.\nFinal Answer: [a1, b2, c3]", 1.0, False),
        ("Final Answer: [c3, a1, b2, b2]", 1.0, False),
        ("Final Answer: [a1]", 0.5, False),
        ("**Final Answer: [a1, b2, c3]**", 1.0, False),
        ("Final Answer: []", 0.0, False),
        ("Final Answer: [a1, b2, c3]\nI hope this helps.", 0.0, True),
        ("[a1, b2, c3]", 0.0, True),
        ("", 0.0, True),
    ],
)
def test_graphwalks(said: str, f1: float, failed: bool) -> None:
    fields = plain_grader("graphwalks", {}).grade({"generation": said, "expected_answer": NODES}).fields
    assert (fields["f1"], fields["parse_failed"]) == (f1, failed)


@pytest.mark.parametrize(
    ("gold", "said", "f1"),
    [
        ('["a1", "b2", "c3"]', "Final Answer: [c3, a1, b2]", 1.0),
        ('["a1", "b2", "c3"]', "Final Answer: [a1]", 0.5),
        ("[]", "Final Answer: []", 1.0),
        ("[1, 2]", "Final Answer: [2, 1]", 1.0),
    ],
)
def test_right_nodes_as_json_text(gold: str, said: str, f1: float) -> None:
    grader = plain_grader("graphwalks", {})
    record = {"generation": said, "expected_answer": gold}
    assert grader.grade(record).fields["f1"] == f1
    assert grader.grade(record | {"generation": grader.gold_reply(record)}).outcome == "correct"  # type: ignore[attr-defined]


@pytest.mark.parametrize("gold", ["a1", '{"a": 1}', None, "[" * 100_000])
def test_no_list_of_nodes_is_unscored(gold: str | None) -> None:
    record = {"generation": "Final Answer: [a1]", "expected_answer": gold}
    assert plain_grader("graphwalks", {}).grade(record).outcome == "unscored"


def test_an_empty_set_is_an_answer() -> None:
    score = plain_grader("graphwalks", {}).grade({"generation": "Final Answer: []", "expected_answer": []})
    assert score.outcome == "correct"


def test_metrics() -> None:
    for name, field, expected in (
        ("ruler", {"is_correct": 0.5}, {"accuracy": 50}),
        ("ruler2", {"is_correct": 0, "soft_score": 0.25}, {"accuracy": 0, "soft_accuracy": 25}),
        ("mrcr", {"seq_match_ratio": 0.5}, {"accuracy": 50, "seq_match_ratio": 50, "exact_match": 0}),
        ("graphwalks", {"f1": 1.0, "parse_failed": False}, {"f1": 100, "accuracy": 100, "parse_failed": 0}),
        (
            "aalcr",
            {"generation": "x", "judgement": "CORRECT", "input_tokens": 7},
            {"judge_correct": 100, "generation_valid": 100},
        ),
    ):
        metric = make_metric(name)
        metric.update([field])
        found = metric.metrics()["pass@1"]
        assert {score: found[score] for score in expected} == expected, name
        wrong = make_metric(name)
        wrong.update([wrong.incorrect(field)])
        assert wrong.metrics()["pass@1"][next(iter(expected))] == 0


def test_a_judge_that_says_neither() -> None:
    metric = make_metric("aalcr")
    metric.update([{"generation": "x", "judgement": "maybe", "input_tokens": 7}])
    metric.update([{"generation": "x", "judgement": "**INCORRECT**", "input_tokens": 9}])
    found = metric.metrics()["pass@1"]
    assert (found["judge_correct"], found["avg_input_tokens"], found["max_input_tokens"]) == (0, 8, 9)
    assert metric.numbers()["pass@1"]["judge_correct"].unscored == 1
