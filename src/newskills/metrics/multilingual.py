# SPDX-License-Identifier: Apache-2.0
"""Right answers in the right language, and mathematics whose levels weigh differently."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.base.stats import Z95
from newskills.metrics.counting.base import NO_ANSWER, Scores
from newskills.metrics.math import MathMetric

_SUFFIX = "_correct"


class MultilingualMetric(MathMetric):
    """The scores of `math`, and each with the language: `symbolic_and_language_correct`, …, `any_language_correct`.

    Both are needed: a right answer in another language, and a wrong one in the right language, count 0.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {**MathMetric.score_fields, "language_correct": bool | None}
    columns = (
        "num_entries",
        "avg_tokens",
        "gen_seconds",
        "judge_correct",
        "symbolic_correct",
        "judge_and_language_correct",
        "symbolic_and_language_correct",
        NO_ANSWER,
    )

    def scores(self, record: Row) -> Scores:
        scores = super().scores(record)
        spoken = record.get("language_correct")
        if spoken is None:
            return scores
        return {
            **scores,
            **{_with_language(name): _zero_unless_spoken(score, spoken) for name, score in scores.items()},
        }

    def incorrect(self, prediction: Row) -> Row:
        wrong = super().incorrect(prediction)
        if prediction.get("language_correct") is not None:
            return {**wrong, "language_correct": False}
        return wrong


def _with_language(name: str) -> str:
    kind = name.removesuffix(_SUFFIX)
    if kind in ("symbolic", "judge"):
        kind += "_and"
    return f"{kind}_language_correct"


def _zero_unless_spoken(score: float | None, spoken: bool) -> float | None:
    if not spoken:
        return 0.0
    return score


class WeightedMathMetric(MathMetric):
    """The scores of `math`, and each weighed by the record's `weight` (1 where it has none): `weighted_…`.

    The weighted score of k samples is Σ w·s / Σ w over problems with the same treatment of samples as the plain one;
    its interval is by linearisation (Cochran 1977, §6.3) with the levels as strata.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {**MathMetric.score_fields, "weight": int | float | None}
    columns = (
        "num_entries",
        "avg_tokens",
        "gen_seconds",
        "weighted_judge_correct",
        "weighted_symbolic_correct",
        "judge_correct",
        "symbolic_correct",
        NO_ANSWER,
    )

    def __init__(self, *, compute_no_answer: bool = True, answer_key: str = "predicted_answer") -> None:
        super().__init__(compute_no_answer=compute_no_answer, answer_key=answer_key)
        self._levels: dict[float, MathMetric] = {}

    def update(self, predictions: Any) -> None:
        super().update(predictions)
        weight = predictions[0].get("weight")
        weight = 1.0 if weight is None else float(weight)
        if weight not in self._levels:
            self._levels[weight] = MathMetric(compute_no_answer=False, answer_key=self.answer_key)
        self._levels[weight].update(predictions)

    def numbers(self) -> dict[str, dict[str, Number]]:
        levels = {weight: metric.numbers() for weight, metric in self._levels.items()}
        numbers_by_mode: dict[str, dict[str, Number]] = {}
        for mode, numbers in super().numbers().items():
            weighted = {}
            for name in numbers:
                parts = [(w, at[mode][name]) for w, at in levels.items() if name in at.get(mode, {})]
                if name != NO_ANSWER and parts:
                    weighted[f"weighted_{name}"] = _weighted_mean(parts)
            numbers_by_mode[mode] = {**numbers, **weighted}
        return numbers_by_mode


def _weighted_mean(parts: list[tuple[float, Number]]) -> Number:
    """Return the mean over strata (weight, number), each worth its weight times its problems."""
    shares = [weight * number.n for weight, number in parts]
    total = math.fsum(shares)
    value = math.fsum(share * number.value for share, (_, number) in zip(shares, parts, strict=True)) / total
    errors = [(number.high - number.low) / (2 * Z95) for _, number in parts]
    half = (
        Z95
        * math.sqrt(math.fsum((share * error) ** 2 for share, error in zip(shares, errors, strict=True)))
        / total
    )
    return Number(
        value=value,
        low=value - half,
        high=value + half,
        n=sum(number.n for _, number in parts),
        unscored=sum(number.unscored for _, number in parts),
        method="stratified",
    )
