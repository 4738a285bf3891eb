# SPDX-License-Identifier: Apache-2.0
"""Figures of lm_eval's own tasks: its aggregations over the values of all documents, in their order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from newskills.base.lm_eval.building import HarnessTask, HarnessWishes, ScoringFacts, scoring_task
from newskills.base.lm_eval.figures import FIGURES, column_of
from newskills.base.lm_eval.package import at_work
from newskills.base.lm_eval.values import unpack_value
from newskills.base.records import Number, Row
from newskills.base.stats import mean_interval
from newskills.metrics.counting.base import ScoreMetric, Scores, is_lost

Key = tuple[str, str]
"""Metric and filter."""
Aggregation = Callable[[Sequence[Any]], Any]
_RESAMPLED, _FEWEST, _MOST = 200_000, 20, 500
"""Documents drawn for the interval of what is no mean, and resamples at least and at most."""


class HarnessMetric(ScoreMetric):
    """Each metric of the task, `metric,filter` where it has several filters; and under `lm_eval` the figures as lm_eval
    gives them, to the last digit. Figures that are no shares (`plain`) are not percentages. Comparisons of samples
    look at the first metric (`score`)."""

    score_fields: ClassVar[Mapping[str, Any]] = {
        "lm_eval_score": bool | int | float | None,
        "lm_eval_values": Any,
        "doc": Any,
        "task": Any,
    }
    headline = ("score",)

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False)
        self._values: list[dict[Key, list[Any]]] = []
        self._first: Row | None = None
        self._filters: dict[str, None] = {}
        self._counted: dict[Key, Any] | None = None

    @property
    def plain(self) -> tuple[str, ...]:
        """Columns that are no percentages."""
        return tuple(self._column(key) for key in self._keys() if key not in self._shares())

    def update(self, predictions: Sequence[Row]) -> None:
        """Count the samples of one problem. Raises DataError where problems have different numbers of samples."""
        self._counted = None
        columns = (predictions[0].get("lm_eval_values") or {}) if predictions else ()
        for name in columns:
            self._filters[name] = None
        super().update(predictions)
        for place, record in enumerate(predictions):
            if place == len(self._values):
                self._values.append({})
            values = record.get("lm_eval_values")
            if not isinstance(values, dict) or is_lost(record):
                continue
            self._first = self._first or record
            for chosen, metrics in values.items():
                for metric, value in metrics.items():
                    self._values[place].setdefault((metric, chosen), []).append(unpack_value(value))

    def scores(self, record: Row) -> Scores:
        held = record.get("lm_eval_values")
        values: Row = held if isinstance(held, dict) else {}
        made: dict[str, float | None] = {"score": record.get("lm_eval_score")}
        for chosen, metrics in values.items():
            for metric, value in metrics.items():
                if isinstance(value, bool | int | float):
                    made[column_of(metric, chosen, len(values))] = min(max(value, 0), 1)
        return made

    def incorrect(self, prediction: Row) -> Row:
        held = prediction.get("lm_eval_values") or {}
        values = {
            chosen: {
                name: 0.0 for name, value in metrics.items() if value is None or isinstance(value, int | float)
            }
            for chosen, metrics in held.items()
        }
        lost = any(value is None for metrics in held.values() for value in metrics.values())
        score = 0.0 if lost or prediction.get("lm_eval_score") is not None else None
        wrong: Row = {"lm_eval_values": values, "lm_eval_score": score}
        return prediction | wrong | {"outcome": "wrong", "outcome_cause": "truncation"}

    def numbers(self) -> dict[str, dict[str, Number]]:
        shares = {self._column(key) for key in self._shares()}
        modes = {
            mode: {name: number for name, number in numbers.items() if name in shares}
            for mode, numbers in super().numbers().items()
        }
        headline = self._headline_mode()
        for key in self._keys():
            if self._column(key) not in shares and (number := self._number(key)) is not None:
                modes.setdefault(headline, {})[self._column(key)] = number
        return modes

    def metrics(self) -> dict[str, Row]:
        modes = super().metrics()
        for row in modes.values():
            row.pop("score_statistics", None)
        figures = self._figures()
        if self._first is not None:
            modes[self._headline_mode()][FIGURES] = {
                "figures": figures,
                "columns": {",".join(key): self._column(key) for key in self._keys() if ",".join(key) in figures},
                "shares": [",".join(key) for key in self._shares()],
                "sample_len": max(map(len, self._values[0].values()), default=0),
            }
        return modes

    def _headline_mode(self) -> str:
        if self._samples > 1:
            return f"pass@1[avg-of-{self._samples}]"
        return "pass@1"

    def _keys(self) -> list[Key]:
        return list(dict.fromkeys(key for values in self._values for key in values))

    def _column(self, key: Key) -> str:
        return column_of(*key, len(self._filters))

    def _shares(self) -> list[Key]:
        """Return the metrics that are plain means of values between 0 and 1."""
        from lm_eval.api.metrics import mean

        means = {key for key, (_, aggregation) in self._aggregated().items() if aggregation is mean}
        return [
            key
            for key in self._keys()
            if key in means
            and all(
                isinstance(value, bool | int | float) and 0 <= value <= 1
                for values in self._values
                for value in values.get(key, ())
            )
        ]

    def _aggregated(self) -> dict[Key, tuple[float | None, Aggregation]]:
        """Return each metric's figure, the mean over samples, with how it is made; None for what is no number."""
        if self._counted is not None:
            return self._counted
        made: dict[Key, tuple[float | None, Aggregation]] = {}
        if self._first is not None:
            parts = self._first["task"]
            with at_work():
                task = scoring_task(
                    msgspec.convert(parts["origin"], HarnessTask),
                    msgspec.convert(parts["wishes"], HarnessWishes),
                    self._first["doc"],
                    msgspec.convert(parts["facts"], ScoringFacts),
                )
                from lm_eval.api.metrics import mean

                known_ways = task.aggregation()
                for key in self._keys():
                    way = known_ways.get(key[0], mean)
                    figures = [way(values[key]) for values in self._values if values.get(key)]
                    made[key] = (_mean_or_none(figures), way)
        self._counted = made
        return made

    def _figures(self) -> Row:
        """Return `metric,filter` → figure, and `metric_stderr,filter` where there is a formula for it."""
        from lm_eval.api.metrics import acc_all_stderr, mean_stderr, stderr_for_metric

        figures: Row = {}
        for (metric, chosen), (value, way) in self._aggregated().items():
            figures[f"{metric},{chosen}"] = value
            formula = stderr_for_metric(metric=way, bootstrap_iters=1)
            values = self._values[0].get((metric, chosen), [])
            if formula in (mean_stderr, acc_all_stderr) and len(values) > 1 and len(self._values) == 1:
                figures[f"{metric}_stderr,{chosen}"] = float(formula(values))
        return figures

    def _number(self, key: Key) -> Number | None:
        """Return a figure that is no share, with an interval: of a mean by its spread, of others by resampling."""
        from lm_eval.api.metrics import mean

        value, way = self._aggregated()[key]
        if value is None:
            return None
        values = self._values[0].get(key) or []
        if way is mean and all(isinstance(one_value, int | float) for one_value in values):
            interval = mean_interval(Counter(values))
            return Number(value=value, low=interval.low, high=interval.high, n=len(values), method=interval.method)
        figures = sorted(_resample_figures(values, way))
        if figures:
            low, high = (figures[int(0.025 * len(figures))], figures[int(0.975 * len(figures))])
        else:
            low, high = (value,) * 2
        return Number(value=value, low=low, high=high, n=len(values), method="bootstrap")


def _mean_or_none(figures: Sequence[Any]) -> float | None:
    """Return the mean of figures; the very figure where there is one, None where it is no number."""
    if not figures or not all(isinstance(figure, int | float) or hasattr(figure, "dtype") for figure in figures):
        return None
    if len(figures) == 1:
        return float(figures[0])
    return float(sum(figures) / len(figures))


def _resample_figures(values: Sequence[Any], way: Aggregation) -> list[float]:
    """Return figures of documents drawn with replacement, the same in every run; none where they cannot be made."""
    draws = random.Random(0)  # noqa: S311 - the same in every run
    figures = []
    for _ in range(min(max(_RESAMPLED // max(len(values), 1), _FEWEST), _MOST)):
        try:
            figures.append(float(way(draws.choices(values, k=len(values)))))
        except (ValueError, TypeError, ZeroDivisionError, OverflowError):
            return []
    return figures
