# SPDX-License-Identifier: Apache-2.0
"""Likelihoods of given continuations: how often the right one is likeliest, and the perplexity of a single one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from newskills.base.records import Number, Row
from newskills.base.stats import bootstrap_interval, mean_interval
from newskills.metrics.counting.base import ScoreMetric, Scores, is_lost
from newskills.metrics.counting.tally import mean_of

_NAMES = ("acc", "acc_norm")
PERPLEXITY = "perplexity"


class LoglikelihoodMetric(ScoreMetric):
    """`acc`, with several continuations `acc_norm`; with one `perplexity`, exp(−mean log-likelihood) of it."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(_NAMES, bool | int | float | None),
        "loglikelihood": int | float | None,
        "continuations": list[str] | None,
    }
    headline = _NAMES
    columns = ("num_entries", *_NAMES, PERPLEXITY)

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False)
        self._values: Counter[float] = Counter()

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        first = predictions[0]
        if len(first.get("continuations") or ()) == 1 and first.get("loglikelihood") is not None:
            self._values[first["loglikelihood"]] += 1

    def scores(self, record: Row) -> Scores:
        several = len(record.get("continuations") or ()) > 1
        return {name: record[name] for name in _NAMES if name in record and (several or name == "acc")}

    def incorrect(self, prediction: Row) -> Row:
        return prediction | dict.fromkeys(_NAMES, False) | {"outcome": "wrong", "outcome_cause": "model"}

    def numbers(self) -> dict[str, dict[str, Number]]:
        numbers = super().numbers()
        if self._values:
            interval = mean_interval(self._values)
            numbers.setdefault("pass@1", {})[PERPLEXITY] = Number(
                value=math.exp(-mean_of(self._values)),
                low=math.exp(-interval.high),
                high=math.exp(-interval.low),
                n=self._values.total(),
                method=interval.method,
            )
        return numbers


class MeasuredText(NamedTuple):
    """A text: natural logarithm of its probability, and its size."""

    loglikelihood: float
    num_bytes: int
    num_words: int


class PerplexityMetric(ScoreMetric):
    """`bits_per_byte`, `byte_perplexity` and `word_perplexity` over all texts together, as lm_eval has them; intervals
    by drawing texts with replacement, from two texts on."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "loglikelihood": int | float | None,
        "num_bytes": int | None,
        "num_words": int | None,
    }
    headline = ("bits_per_byte",)
    columns = ("num_entries", "bits_per_byte", "byte_perplexity", "word_perplexity")
    plain = ("bits_per_byte", "byte_perplexity", "word_perplexity")

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False)
        self._texts: list[MeasuredText] = []

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        first = predictions[0]
        if not is_lost(first) and first.get("loglikelihood") is not None and first.get("num_bytes"):
            self._texts.append(MeasuredText(first["loglikelihood"], first["num_bytes"], first["num_words"] or 1))

    def scores(self, record: Row) -> Scores:
        return {}

    def incorrect(self, prediction: Row) -> Row:
        return prediction | {"loglikelihood": None, "outcome": "wrong", "outcome_cause": "truncation"}

    def metrics(self) -> dict[str, Row]:
        return {mode: row | self._figures(self._texts) for mode, row in super().metrics().items()}

    def numbers(self) -> dict[str, dict[str, Number]]:
        numbers = super().numbers()
        if len(self._texts) < 2:
            return numbers
        for name, value in self._figures(self._texts).items():
            low, high = bootstrap_interval(self._texts, partial(self._figure, name))
            numbers.setdefault("pass@1", {})[name] = Number(
                value=value, low=low, high=high, n=len(self._texts), method="bootstrap"
            )
        return numbers

    def _figure(self, name: str, texts: Sequence[MeasuredText]) -> float:
        return self._figures(texts)[name]

    @staticmethod
    def _figures(texts: Sequence[MeasuredText]) -> dict[str, float]:
        if not texts:
            return {}
        nats = -math.fsum(text.loglikelihood for text in texts)
        num_bytes = sum(text.num_bytes for text in texts)
        num_words = sum(text.num_words for text in texts)
        return {
            "bits_per_byte": nats / num_bytes / math.log(2),
            "byte_perplexity": math.exp(nats / num_bytes),
            "word_perplexity": math.exp(nats / num_words),
        }
