# SPDX-License-Identifier: Apache-2.0
"""What samples are worth, section by section, and headlines over the sections."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import (
    NO_ANSWER,
    REWARD_FIELD,
    Scores,
    family_values,
    is_lost,
    values_unless_lost,
)
from newskills.metrics.counting.corpus import Sums, sections_jackknife
from newskills.metrics.counting.seeds import SeedMetric

SectionScore = Callable[[Mapping[str, Sums]], float | None]
"""Section → (sum of values, number of samples), without empty ones → the headline in percent; None: nothing to say."""


def section_means(sums: Mapping[str, Sums]) -> dict[str, float]:
    """Return section → mean of its samples' values, 0–1."""
    return {section: total / count for section, (total, count) in sums.items()}


def macro_mean(sums: Mapping[str, Sums]) -> float:
    """Return the plain mean of the sections' means."""
    means = section_means(sums)
    return 100.0 * math.fsum(means.values()) / len(means)


class SectionMetric(SeedMetric):
    """Base: `accuracy` over all samples, and headlines of `composites` over sections, which `section_key` names.

    A sample is worth `is_correct`, `symbolic_correct` or `judge_correct` (true, false, or 0–1), else its outcome.
    """

    value_fields: ClassVar[tuple[str, ...]] = ("is_correct", "symbolic_correct", "judge_correct")
    headline = ("accuracy",)
    composites: ClassVar[Mapping[str, SectionScore]] = {}
    score_fields: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        *,
        section_key: str = "subset_for_metrics",
        answer_key: str = "predicted_answer",
        no_answer: bool = True,
    ) -> None:
        super().__init__(compute_no_answer=no_answer, answer_key=answer_key)
        self._section_key = section_key
        self.fields = {
            **self.fields,
            **dict.fromkeys(self.value_fields, bool | int | float | None),
            section_key: Any,
        }
        self.columns = ("num_entries", "avg_tokens", "gen_seconds", *self.composites, "accuracy", NO_ANSWER)
        self._by_seed: list[Counter[tuple[str, tuple[float, ...]]]] = []

    def scores(self, record: Row) -> Scores:
        return {"accuracy": self.value(record)}

    def value(self, record: Row) -> float | None:
        """Return the score of a sample, 0–1; None = unscored."""
        for field in self.value_fields:
            if record.get(field) is not None:
                return float(record[field])
        outcome = record.get("outcome")
        if outcome in ("correct", "wrong", NO_ANSWER):
            return float(outcome == "correct")
        return None

    def section(self, record: Row) -> str:
        """Return the section that the sample counts in."""
        return str(record.get(self._section_key))

    def counts(self, record: Row) -> Sequence[float] | None:
        value = self.value(record)
        if value is None:
            return None
        return value, 1.0

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        self._by_seed += [Counter() for _ in predictions[len(self._by_seed) :]]
        for seed, record in enumerate(predictions):
            if is_lost(record):
                continue
            counts = self.counts(record)
            if counts is not None:
                self._by_seed[seed][self.section(record), tuple(counts)] += 1

    def figures(self) -> Iterable[str]:
        return self.composites

    def figure(self, name: str, seed: int) -> Number | None:
        return sections_jackknife(self._by_seed[seed], self.composites[name])

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {field: False for field in self.value_fields if field in prediction}
        return prediction | wrong | {self.answer_key: None, "outcome": NO_ANSWER, "outcome_cause": "truncation"}


class MacroMetric(SectionMetric):
    """`macro_accuracy`: the plain mean of the sections' accuracies, and of their pass@k and votes."""

    composites: ClassVar[Mapping[str, SectionScore]] = {"macro_accuracy": macro_mean}

    def __init__(
        self,
        *,
        section_key: str = "subset_for_metrics",
        answer_key: str = "predicted_answer",
        no_answer: bool = True,
    ) -> None:
        super().__init__(section_key=section_key, answer_key=answer_key, no_answer=no_answer)
        self._by_mode: dict[tuple[str, int], Counter[tuple[str, tuple[float, ...]]]] = {}

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        super().update(predictions)
        if len(predictions) == 1:
            return
        values = values_unless_lost(predictions, self.value)
        voted = [self.vote(record) for record in predictions]
        rewards = [record.get(REWARD_FIELD) for record in predictions]
        section = self.section(predictions[0])
        for family, by_k in family_values(values, voted, rewards).items():
            for k, value in enumerate(by_k, 1):
                self._by_mode.setdefault((family, k), Counter())[section, (float(value), 1.0)] += 1

    def numbers(self) -> dict[str, dict[str, Number]]:
        numbers_by_mode = super().numbers()
        for mode, family, k in self._modes():
            if (family, k) == ("pass", 1) or (family, k) not in self._by_mode:
                continue
            if (number := sections_jackknife(self._by_mode[family, k], macro_mean)) is not None:
                numbers_by_mode.setdefault(mode, {})["macro_accuracy"] = number
        return numbers_by_mode
