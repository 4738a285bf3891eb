# SPDX-License-Identifier: Apache-2.0
"""FollowBench: how many constraints are kept, level by level (Jiang et al. 2024, arXiv:2310.20410)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.base.stats import bootstrap_interval
from newskills.metrics.counting.base import ScoreMetric, Scores, values_unless_lost

_LEVELS = 5
_RESAMPLES = 500
Satisfied = tuple[bool, float]
"""All constraints kept, and the share of those that are; of one sample."""
Group = tuple[str, Mapping[int, Sequence[Satisfied | None]]]
"""Kind of constraint, and level → samples of an instruction that is made harder; None: unscored."""


class FollowBenchMetric(ScoreMetric):
    """`hsr`, `ssr`: hard and soft satisfaction rate, the mean over levels of the mean over kinds of constraint.

    `csl`: how many levels in a row are kept from the first on (0–5), mean over kinds, where rows of all levels are
    there. `satisfied`: instructions with all constraints kept, all of one weight. The authors' tables give a rate for
    each kind and level.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {
        "hard_satisfied": bool | None,
        "soft_satisfied": int | float | None,
        "constraint_type": str,
        "example": Any,
        "level": int,
    }
    headline = ("satisfied",)
    columns = ("num_entries", "avg_tokens", "gen_seconds", "hsr", "ssr", "csl", "satisfied")

    def __init__(self) -> None:
        super().__init__(compute_no_answer=False, answer_key="generation")
        self._groups: dict[tuple[str, str], dict[int, list[Satisfied | None]]] = {}

    def scores(self, record: Row) -> Scores:
        return {"satisfied": record.get("hard_satisfied")}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"hard_satisfied": False, "soft_satisfied": 0.0}
        return prediction | wrong | {"outcome": "wrong", "outcome_cause": "truncation"}

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        first = predictions[0]
        group = self._groups.setdefault((str(first["constraint_type"]), str(first["example"])), {})
        group[int(first["level"])] = values_unless_lost(predictions, _satisfied_shares)

    def numbers(self) -> dict[str, dict[str, Number]]:
        modes = super().numbers()
        for mode, family, k in self._modes():
            groups = [(kind, _counted_samples(levels, family, k)) for (kind, _), levels in self._groups.items()]
            figures = {"hsr": _hard_rate, "ssr": _soft_rate, "csl": _consistent_levels}
            for name, statistic in figures.items():
                value = statistic(groups)
                if not math.isnan(value):
                    low, high = bootstrap_interval(groups, statistic, resamples=_RESAMPLES)
                    unscored = self._problems * self._samples - self._tallies["satisfied"].scored
                    modes[mode][name] = Number(
                        value=value, low=low, high=high, n=len(groups), unscored=unscored, method="bootstrap"
                    )
        return modes


def _counted_samples(levels: Mapping[int, Sequence[Satisfied | None]], family: str, k: int) -> Mapping[int, Any]:
    """Select the best of the first k samples (pass@k), or all of them."""
    counted: dict[int, list[Satisfied | None]] = {}
    for level, samples in levels.items():
        first = samples[:k]
        if family == "pass" and k > 1:
            first = [max((sample for sample in first if sample is not None), default=None)]
        counted[level] = list(first)
    return counted


def _hard_rate(groups: Sequence[Group]) -> float:
    return _mean_rate(groups, 0)


def _soft_rate(groups: Sequence[Group]) -> float:
    return _mean_rate(groups, 1)


def _mean_rate(groups: Sequence[Group], which: int) -> float:
    """Return the rate in percent; not a number without any verdict."""
    values: dict[int, dict[str, list[float]]] = {}
    for kind, levels in groups:
        for level, samples in levels.items():
            scored = [sample[which] for sample in samples if sample is not None]
            if scored:
                values.setdefault(level, {}).setdefault(kind, []).append(math.fsum(scored) / len(scored))
    return 100 * _mean_or_nan(
        [_mean_or_nan([_mean_or_nan(listed) for listed in kinds.values()]) for kinds in values.values()]
    )


def _consistent_levels(groups: Sequence[Group]) -> float:
    """Return the mean of consistent levels; not a number where no instruction has all levels."""
    values: dict[str, list[float]] = {}
    for kind, levels in groups:
        if len(levels) == _LEVELS:
            runs = [
                _levels_in_a_row(run) for run in zip(*(levels[level] for level in sorted(levels)), strict=True)
            ]
            whole = [run for run in runs if run is not None]
            if whole:
                values.setdefault(kind, []).append(_mean_or_nan(whole))
    return _mean_or_nan([_mean_or_nan(listed) for listed in values.values()])


def _levels_in_a_row(levels: Sequence[Satisfied | None]) -> float | None:
    """Return how many levels from the first on are kept; None where an unscored one leaves that open."""
    for number, satisfied in enumerate(levels):
        if satisfied is None:
            return None
        if not satisfied[0]:
            return number
    return len(levels)


def _satisfied_shares(record: Row) -> Satisfied | None:
    if record.get("hard_satisfied") is None:
        return None
    return bool(record["hard_satisfied"]), float(record["soft_satisfied"])


def _mean_or_nan(values: Sequence[float]) -> float:
    if not values:
        return math.nan
    return math.fsum(values) / len(values)
