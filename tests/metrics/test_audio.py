# SPDX-License-Identifier: Apache-2.0
"""Corpus scores of speech against sums done by hand, and against jiwer over the whole corpus."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.metrics import make_metric


def _record(errors: int, words: int, **more: Any) -> dict[str, Any]:
    counts = {
        "wer": [errors, words], "substitutions": [errors, 1], "insertions": [0, 1], "deletions": [0, 1],
        "ref_words": [words, 1],
    }  # fmt: skip
    good = errors < words / 2
    return {"is_correct": good, "audio_counts": counts, "predicted_answer": "x", **more}


def test_corpus_and_macro() -> None:
    metric = make_metric("audio")
    for errors, words in ((0, 10), (1, 2), (3, 8)):
        metric.update([_record(errors, words)])
    row = metric.metrics()["pass@1"]
    assert row["wer"] == pytest.approx(100 * 4 / 20)
    assert row["wer_macro"] == pytest.approx(100 * (0 + 0.5 + 0.375) / 3)
    assert row["success_rate"] == pytest.approx(200 / 3)
    assert [row[name] for name in ("substitutions", "ref_words")] == [4, 20]
    low, high = row["wer_interval"]
    assert low < row["wer"] < high


def test_seeds_are_averaged_and_the_lost_are_left_out() -> None:
    metric = make_metric("audio")
    lost = {"outcome": "unscored", "outcome_cause": "provider", "audio_counts": None, "is_correct": None}
    metric.update([_record(0, 10), _record(5, 10)])
    metric.update([_record(2, 10), lost])
    modes = metric.metrics()
    assert modes["pass@1[avg-of-2]"]["wer"] == pytest.approx((10 + 50) / 2)
    assert "wer" not in modes["pass@2"]
    assert metric.ledger().unscored == 1


def test_a_missing_transcript_is_all_deletions() -> None:
    metric = make_metric("audio")
    wrong = metric.incorrect(_record(0, 10))
    missing = {"substitutions": [0, 1], "insertions": [0, 1], "deletions": [10, 1], "ref_words": [10, 1]}
    assert wrong["audio_counts"] == {"wer": [10, 10], **missing}
    metric.update([wrong])
    row = metric.metrics()["pass@1"]
    assert (row["wer"], row["deletions"], row["success_rate"]) == (100.0, 10, 0.0)


def test_whole_corpora_are_as_jiwer_scores_them() -> None:
    jiwer = pytest.importorskip("jiwer")
    draw = random.Random(5)
    vocabulary = ["river", "stone", "window", "paper", "garden", "yellow", "quickly", "seldom", "honest", "broken"]
    grader, metric = plain_grader("audio", {}), make_metric("audio")
    right, heard = [], []
    for _ in range(40):
        said = [draw.choice(vocabulary) for _ in range(draw.randint(1, 12))]
        got = [draw.choice(vocabulary) if draw.random() < 0.3 else word for word in said if draw.random() < 0.9]
        right.append(" ".join(said))
        heard.append(" ".join(got))
        record = {"expected_answer": right[-1], "generation": heard[-1]}
        score = grader.grade(record)
        metric.update([{**record, **score.fields, "outcome": score.outcome}])
    row = metric.metrics()["pass@1"]
    assert row["wer"] == pytest.approx(100 * jiwer.wer(right, heard))
    assert row["cer"] == pytest.approx(100 * jiwer.cer(right, heard))
    assert row["ref_words"] == sum(len(text.split()) for text in right)


def test_judges_give_points() -> None:
    metric = make_metric("audio")
    metric.update([{"judgement": "Rating: 4", "judge_rating": 4.0, "judge_correct": True}])
    metric.update([{"judgement": "Rating: 1", "judge_rating": 1.0, "judge_correct": False}])
    row = metric.metrics()["pass@1"]
    assert (row["judge_score"], row["success_rate"]) == (50.0, 50.0)


def test_criteria() -> None:
    metric = make_metric("mmau_pro_open_ended")
    for overall in (5.0, 4.0, 2.0):
        points = {f"judge_{name}": 5.0 for name in ("correctness", "relevance", "completeness", "clarity")}
        metric.update([{**points, "judge_overall": overall, "judge_correct": overall >= 4}])
    row = metric.metrics()["pass@1"]
    assert row["avg_overall"] == pytest.approx(100 * 11 / 15)
    assert row["success_rate"] == row["good_response_rate"] == pytest.approx(200 / 3)
    assert row["poor_response_rate"] == pytest.approx(100 / 3)


def test_yes_and_no() -> None:
    metric = make_metric("yes_no")
    for right, said in (("A", "A"), ("A", "B"), ("B", "A"), ("B", "B"), ("B", None)):
        metric.update([{"expected_answer": right, "predicted_answer": said, "symbolic_correct": right == said}])
    row = metric.metrics()["pass@1"]
    assert (row["symbolic_correct"], row["yes_rate"], row["f1"]) == (40.0, 40.0, 50.0)
    assert row["mcc"] == pytest.approx(100 / 6)


@pytest.mark.parametrize(
    ("said", "mcc"), [("AABB", 100.0), ("BBAA", -100.0), ("AAAA", 0.0), ("ABBB", 100 / 3**0.5)]
)
def test_matthews_correlation(said: str, mcc: float) -> None:
    metric = make_metric("yes_no")
    for right, word in zip("AABB", said, strict=True):
        metric.update([{"expected_answer": right, "predicted_answer": word, "symbolic_correct": right == word}])
    assert metric.metrics()["pass@1"]["mcc"] == pytest.approx(mcc)


def test_without_a_yes_nothing_is_precise() -> None:
    metric = make_metric("yes_no")
    for right in "BB":
        metric.update([{"expected_answer": right, "predicted_answer": "B", "symbolic_correct": True}])
    row = metric.metrics()["pass@1"]
    assert [row[name] for name in ("precision", "recall", "f1", "mcc", "yes_rate")] == [0.0] * 5
    assert row["symbolic_correct"] == 100.0


def test_drafts() -> None:
    metric = make_metric("specdec")
    for drafts, drafted, accepted in ((10, 40, 30), (30, 120, 30)):
        counts = {"spec_num_drafts": drafts, "spec_draft_tokens": drafted, "spec_accepted_tokens": accepted}
        metric.update([{**counts, "is_correct": True}])
    row = metric.metrics()["pass@1"]
    assert (row["spec_acceptance_length"], row["spec_acceptance_rate"]) == (2.5, 37.5)
    assert row["spec_num_drafts"] == 20
