# SPDX-License-Identifier: Apache-2.0
"""Shares of texts found, likeness, sets of nodes, and answers about documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.judgement import parse_verdict
from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, ScoreMetric, Scores

_VERDICTS = {"A": "correct", "B": "incorrect"}


class FieldMetric(ScoreMetric):
    """Base: scores that are fields of the record; `names`: score → (field, its value for a wrong sample)."""

    names: ClassVar[Mapping[str, tuple[str, float]]]

    def __init__(self, *, compute_no_answer: bool = True) -> None:
        super().__init__(compute_no_answer=compute_no_answer)

    def scores(self, record: Row) -> Scores:
        return {name: record[field] for name, (field, _) in self.names.items() if field in record}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {field: worst for field, worst in self.names.values() if field in prediction}
        return prediction | wrong | {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}


def _score_fields(*names: str) -> Mapping[str, Any]:
    return dict.fromkeys(names, bool | int | float | None)


class ShareMetric(FieldMetric):
    """`accuracy`: the mean share of right texts that occur in the reply."""

    score_fields: ClassVar[Mapping[str, Any]] = _score_fields("is_correct")
    names: ClassVar[Mapping[str, tuple[str, float]]] = {"accuracy": ("is_correct", 0.0)}
    headline = ("accuracy",)
    columns: tuple[str, ...] = ("num_entries", "avg_tokens", "gen_seconds", "accuracy", NO_ANSWER)


class Ruler2Metric(FieldMetric):
    """`accuracy` as for RULER, and `soft_accuracy`, which counts words."""

    score_fields: ClassVar[Mapping[str, Any]] = _score_fields("is_correct", "soft_score")
    names: ClassVar[Mapping[str, tuple[str, float]]] = {
        "accuracy": ("is_correct", 0.0),
        "soft_accuracy": ("soft_score", 0.0),
    }
    headline = ("accuracy",)
    columns: tuple[str, ...] = ("num_entries", "avg_tokens", "gen_seconds", "accuracy", "soft_accuracy", NO_ANSWER)


class MrcrMetric(FieldMetric):
    """`accuracy`: the mean likeness, also as `seq_match_ratio`; `exact_match`: the share that is the right text."""

    score_fields: ClassVar[Mapping[str, Any]] = _score_fields("seq_match_ratio")
    names: ClassVar[Mapping[str, tuple[str, float]]] = {"seq_match_ratio": ("seq_match_ratio", 0.0)}
    headline = ("accuracy",)
    columns: tuple[str, ...] = ("num_entries", "avg_tokens", "gen_seconds", "accuracy", "exact_match", NO_ANSWER)

    def scores(self, record: Row) -> Scores:
        ratio = record.get("seq_match_ratio")
        exact = None if ratio is None else ratio == 1
        return {"accuracy": ratio, "seq_match_ratio": ratio, "exact_match": exact}


class GraphwalksMetric(FieldMetric):
    """`f1` of sets of nodes; `accuracy`: exactly the right set; `parse_failed`: the share without a final answer."""

    score_fields: ClassVar[Mapping[str, Any]] = _score_fields("f1", "parse_failed")
    names: ClassVar[Mapping[str, tuple[str, float]]] = {"f1": ("f1", 0.0), "parse_failed": ("parse_failed", 1.0)}
    headline = ("f1",)
    columns: tuple[str, ...] = ("num_entries", "avg_tokens", "gen_seconds", "f1", "accuracy", "parse_failed")

    def scores(self, record: Row) -> Scores:
        f1 = record.get("f1")
        accuracy = None if f1 is None else f1 == 1
        return {**super().scores(record), "accuracy": accuracy}


class AalcrMetric(ScoreMetric):
    """`judge_correct` (CORRECT or INCORRECT), `generation_valid` (a reply that is not blank), and lengths of inputs.

    Categories of documents are the subsets of the table.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"judgement": Any, "generation": Any, "input_tokens": Any}
    headline = ("judge_correct",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "judge_correct", "generation_valid", "avg_input_tokens")

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")
        self._lengths: list[float] = []

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        length = predictions[0].get("input_tokens")
        if isinstance(length, int | float):
            self._lengths += [float(length)]

    def scores(self, record: Row) -> Scores:
        generation = record.get("generation")
        valid = isinstance(generation, str) and bool(generation.strip())
        if "judgement" not in record:
            return {"generation_valid": valid}
        verdict = parse_verdict(record["judgement"], _VERDICTS)
        judge_correct = None if verdict is None else verdict == "correct"
        return {"judge_correct": judge_correct, "generation_valid": valid}

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"judgement": "INCORRECT", "outcome": "wrong", "outcome_cause": "truncation"}

    def metrics(self) -> dict[str, Row]:
        if not self._lengths:
            return super().metrics()
        extra = {
            "avg_input_tokens": sum(self._lengths) / len(self._lengths),
            "min_input_tokens": min(self._lengths),
            "max_input_tokens": max(self._lengths),
        }
        return {mode: row | extra for mode, row in super().metrics().items()}
