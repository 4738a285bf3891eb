# SPDX-License-Identifier: Apache-2.0
"""Figures of a whole run over the data, one for each seed, beside what each sample scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from newskills.base.records import Number
from newskills.metrics.counting.base import ScoreMetric
from newskills.metrics.counting.corpus import mean_number


class SeedMetric(ScoreMetric):
    """Base: the `figures`, at `pass@1` and its averages over seeds."""

    @abstractmethod
    def figures(self) -> Iterable[str]:
        """Return the names of the figures."""

    @abstractmethod
    def figure(self, name: str, seed: int) -> Number | None:
        """Return the figure called `name` over the samples of one seed; None where it has none."""

    def numbers(self) -> dict[str, dict[str, Number]]:
        numbers_by_mode = super().numbers()
        for mode, family, k in self._modes():
            if k > 1 and family != "average":
                continue
            seed_count = k if family == "average" else self._samples
            seeds = range(seed_count)
            for name in self.figures():
                if per_seed := [number for seed in seeds if (number := self.figure(name, seed)) is not None]:
                    numbers_by_mode.setdefault(mode, {})[name] = mean_number(per_seed)
        return numbers_by_mode
