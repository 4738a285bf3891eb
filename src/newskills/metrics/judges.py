# SPDX-License-Identifier: Apache-2.0
"""Models as judges: their verdicts and marks against those of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.base import NO_ANSWER, Scores
from newskills.metrics.kinds import KindMetric
from newskills.metrics.verdicts import Part, VerdictMetric


class AnswerJudgementMetric(VerdictMetric):
    """`correct_judgements`; `false_positives` (wrongly accepted), `false_negatives`, `invalid_judgements`: of all.

    `precision`, `recall` and `f1` are those of accepting, over valid judgements.
    """

    names: ClassVar[Mapping[str, str]] = {
        "true_positive": "true_positives",
        "true_negative": "true_negatives",
        "false_positive": "false_positives",
        "false_negative": "false_negatives",
        "invalid": "invalid_judgements",
    }
    ratios: ClassVar[Mapping[str, tuple[Part, ...]]] = {
        "precision": (Part("true_positive", 1, 1), Part("false_positive", 0, 1)),
        "recall": (Part("true_positive", 1, 1), Part("false_negative", 0, 1)),
        "f1": (Part("true_positive", 2, 2), Part("false_positive", 0, 1), Part("false_negative", 0, 1)),
    }
    score_fields: ClassVar[Mapping[str, Any]] = {"judgement_kind": str | None}
    headline = ("correct_judgements",)
    columns = (
        "num_entries",
        "avg_tokens",
        "gen_seconds",
        "correct_judgements",
        "false_positives",
        "false_negatives",
        "invalid_judgements",
        *ratios,
    )

    def verdict(self, record: Row) -> str | None:
        kind = record.get("judgement_kind")
        return kind if kind in self.names else None

    def scores(self, record: Row) -> Scores:
        kind = self.verdict(record)
        right = None if kind is None else kind.startswith("true")
        return {"correct_judgements": right, **super().scores(record)}

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"judgement_kind": "invalid", "outcome": NO_ANSWER, "outcome_cause": "truncation"}


class GradingMetric(KindMetric):
    """`exact_accuracy`, `binarized_accuracy` in percent; `mae`: points (of 7) by which marks are off."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "exact": bool | None,
        "binarized": bool | None,
        "points_off": int | float | None,
    }
    headline = ("exact_accuracy",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "exact_accuracy", "binarized_accuracy", "mae")

    def scores(self, record: Row) -> Scores:
        off = record.get("points_off")
        marked = {} if off is None else {"mae": off / 100}
        return {"exact_accuracy": record.get("exact"), "binarized_accuracy": record.get("binarized"), **marked}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"exact": False, "binarized": False, "points_off": None, self.answer_key: None}
        return prediction | wrong | {"outcome": NO_ANSWER, "outcome_cause": "truncation"}
