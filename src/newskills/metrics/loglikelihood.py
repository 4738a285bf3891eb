# SPDX-License-Identifier: Apache-2.0
"""Likelihoods of given continuations: how often the right one is likeliest, and the perplexity of a single one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.base.stats import mean_interval
from newskills.metrics.counting.base import ScoreMetric, Scores
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
