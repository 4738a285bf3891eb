# SPDX-License-Identifier: Apache-2.0
"""Quotients of sums over samples, beside what each sample scores: yes or no (POPE), speculative decoding."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import NO_ANSWER, Scores, values_unless_lost
from newskills.metrics.counting.corpus import jackknife_number
from newskills.metrics.counting.seeds import SeedMetric

Quotient = Callable[[Sequence[float]], float]


class RatioMetric(SeedMetric):
    """Base: `ratios` are functions of the sums over samples of what `counts` gives, at `pass@1` and its averages."""

    ratios: ClassVar[Mapping[str, Quotient]]

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self._counts: list[list[Sequence[float] | None]] = []

    @abstractmethod
    def counts(self, record: Row) -> Sequence[float] | None:
        """Return what one sample adds; None = nothing."""

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        self._counts.append(values_unless_lost(predictions, self.counts))

    def figures(self) -> Iterable[str]:
        return self.ratios

    def figure(self, name: str, seed: int) -> Number | None:
        return jackknife_number([row[seed] for row in self._counts], self.ratios[name])


def _share_quotient(of: int, among: Sequence[int], unit: float = 100.0) -> Quotient:
    def share(sums: Sequence[float]) -> float:
        total = sum(sums[place] for place in among)
        if total:
            return unit * sums[of] / total
        return 0.0

    return share


def _matthews_correlation(sums: Sequence[float]) -> float:
    both, yes, wanted, total = sums
    spread = yes * (total - yes) * wanted * (total - wanted)
    if spread > 0:
        return 100.0 * (both * total - yes * wanted) / math.sqrt(spread)
    return 0.0


class YesNoMetric(RatioMetric):
    """`symbolic_correct`; `f1`, `precision`, `recall` of yes (option A), `mcc`, Matthews' correlation, and `yes_rate`
    (arXiv:2305.10355)."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "symbolic_correct": bool | int | float | None,
        "expected_answer": Any,
    }
    headline = ("symbolic_correct",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "symbolic_correct", "f1", "mcc", "yes_rate", NO_ANSWER)
    ratios: ClassVar[Mapping[str, Quotient]] = {
        "f1": lambda sums: 200.0 * sums[0] / (sums[1] + sums[2]) if sums[1] + sums[2] else 0.0,
        "mcc": _matthews_correlation,
        "precision": _share_quotient(0, (1,)),
        "recall": _share_quotient(0, (2,)),
        "yes_rate": _share_quotient(1, (3,)),
    }

    def scores(self, record: Row) -> Scores:
        return {"symbolic_correct": record.get("symbolic_correct")}

    def counts(self, record: Row) -> Sequence[float]:
        says_yes, wanted = self.answer(record) == "A", record["expected_answer"] == "A"
        return (says_yes and wanted, says_yes, wanted, 1)

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"symbolic_correct": False, self.answer_key: None, "outcome": NO_ANSWER}
        return prediction | wrong | {"outcome_cause": "truncation"}


class SpecDecMetric(RatioMetric):
    """`spec_acceptance_rate` (percent), `spec_acceptance_length`, and means of the counts for each sample."""

    _names: ClassVar[tuple[str, ...]] = ("spec_num_drafts", "spec_draft_tokens", "spec_accepted_tokens")
    score_fields: ClassVar[Mapping[str, Any]] = {"is_correct": bool | None, **dict.fromkeys(_names, int | None)}
    headline = ("measured",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "spec_acceptance_length", "spec_acceptance_rate")
    ratios: ClassVar[Mapping[str, Quotient]] = {
        "spec_acceptance_length": lambda sums: 1 + sums[2] / sums[0] if sums[0] else 0.0,
        "spec_acceptance_rate": _share_quotient(2, (1,)),
        "spec_num_drafts": _share_quotient(0, (3,), 1.0),
        "spec_draft_tokens": _share_quotient(1, (3,), 1.0),
        "spec_accepted_tokens": _share_quotient(2, (3,), 1.0),
    }

    def scores(self, record: Row) -> Scores:
        return {"measured": record.get("is_correct")}

    def counts(self, record: Row) -> Sequence[float] | None:
        counts = [record.get(name) for name in self._names]
        if None in counts:
            return None
        return [*(count or 0 for count in counts), 1]

    def incorrect(self, prediction: Row) -> Row:
        """Return the prediction as it is: a reply that was cut short has been measured all the same."""
        return prediction


class LogicGridMetric(RatioMetric):
    """`puzzle_accuracy` (every cell is right); `cell_accuracy`, the right cells of all cells (arXiv:2502.01100)."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "is_correct": bool | None,
        **dict.fromkeys(("correct_cells", "total_cells"), int | None),
    }
    headline = ("puzzle_accuracy",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "puzzle_accuracy", "cell_accuracy")
    ratios: ClassVar[Mapping[str, Quotient]] = {"cell_accuracy": _share_quotient(0, (1,))}

    def __init__(self, *, compute_no_answer: bool = False, answer_key: str = "generation") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)

    def scores(self, record: Row) -> Scores:
        return {"puzzle_accuracy": record.get("is_correct")}

    def counts(self, record: Row) -> Sequence[float] | None:
        right, total = record.get("correct_cells"), record.get("total_cells")
        if right is None or total is None:
            return None
        return right, total

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"is_correct": False, "correct_cells": 0, "outcome": NO_ANSWER}
        return prediction | wrong | {"outcome_cause": "truncation"}
