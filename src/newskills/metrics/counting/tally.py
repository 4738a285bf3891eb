# SPDX-License-Identifier: Apache-2.0
"""One score over all problems, kept as counts of alike problems: memory does not grow with their number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import add

from newskills.base.records import Row
from newskills.base.stats import mean_std
from newskills.metrics.counting.votes import ZERO_ONE

AVERAGE_MODE = "average"


class Tally:
    """Values of problems by family (pass, majority, …) and k; averages over the first k samples; sums of runs."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self._values: dict[str, Counter[tuple[int, float]]] = {}
        self._prefixes: Counter[tuple[int, int, float, float]] = Counter()
        self._run_sums: list[float] = [0] * samples
        self._run_counts = [0] * samples

    def add(self, scores: Sequence[float | None], values: Mapping[str, Sequence[float]]) -> None:
        """Add one problem: its samples (None if unscored), and by family its values for k = 1, 2, … scored
        samples."""
        for family, by_k in values.items():
            self._values.setdefault(family, Counter()).update(enumerate(by_k, 1))
        ks = range(1, self.samples + 1)
        missing = scores.count(None)
        present = [score for score in scores if score is not None]
        if missing:
            filled: Sequence[float] = [score or 0 for score in scores]
            flags = [score is not None for score in scores]
            counted: Sequence[int] = list(accumulate(flags))
            self._run_counts = list(map(add, self._run_counts, flags))
        else:
            filled, counted = present, ks
            self._run_counts = [count + 1 for count in self._run_counts]
        self._run_sums = list(map(add, self._run_sums, filled))
        sums = list(accumulate(filled))
        if ZERO_ONE.issuperset(present):
            squares = sums
        else:
            squares = list(accumulate(score * score for score in filled))
        self._prefixes.update(zip(ks, counted, sums, squares, strict=True))

    def add_alike(self, score: float | None, values: Mapping[str, Sequence[float]], problems: int) -> None:
        """Add so many problems of one sample each, all with this score and these values."""
        for family, by_k in values.items():
            counts = self._values.setdefault(family, Counter())
            for key in enumerate(by_k, 1):
                counts[key] += problems
        scored, value = score is not None, score or 0
        self._run_counts[0] += problems * scored
        self._run_sums[0] += problems * value
        square = value if value in ZERO_ONE else value * value
        self._prefixes[1, int(scored), value, square] += problems

    @property
    def scored(self) -> int:
        """Samples with a score."""
        return sum(self._run_counts)

    def families(self) -> list[str]:
        return list(self._values)

    def values(self, family: str) -> dict[int, dict[float, int]]:
        """Return k → value of a problem → how many problems have it."""
        histograms: dict[int, dict[float, int]] = {}
        if family == AVERAGE_MODE:
            averages = self._averages_by_k()
        else:
            averages = self._values_by_k(family)
        for k, value, count in averages:
            at = histograms.setdefault(k, {})
            at[value] = at.get(value, 0) + count
        return histograms

    def statistics(self) -> dict[int, Row]:
        """Return k → variation over runs and within problems, in the unit of the score; k ≥ 2."""
        averages, deviations = self.values(AVERAGE_MODE), self._mean_deviations()
        statistics = {}
        for k in range(2, self.samples + 1):
            if k not in deviations:  # else a problem has two scores, and so two runs have one
                continue
            runs = [
                total / count
                for total, count in zip(self._run_sums[:k], self._run_counts[:k], strict=True)
                if count
            ]
            deviation = mean_std(runs)[1]
            statistics[k] = {
                "avg": mean_of(averages[k]),
                "std_dev_across_runs": deviation,
                "avg_sample_std_dev": deviations[k],
                "std_err_across_runs": deviation / math.sqrt(len(runs)),
            }
        return statistics

    def _values_by_k(self, family: str) -> Iterator[tuple[int, float, int]]:
        for (k, value), count in self._values.get(family, {}).items():
            yield k, value, count

    def _averages_by_k(self) -> Iterator[tuple[int, float, int]]:
        for (k, scored, total, _), count in self._prefixes.items():
            if scored:
                yield k, total / scored, count

    def _mean_deviations(self) -> dict[int, float]:
        """Return k → mean over problems of the standard deviation (ddof 1) of their first k samples."""
        sums: dict[int, list[float]] = {}
        for (k, scored, total, squares), count in self._prefixes.items():
            if scored >= 2:
                variance = (scored * squares - total * total) / (scored * (scored - 1))
                at = sums.setdefault(k, [0.0, 0])
                at[0] += count * math.sqrt(max(0.0, variance))
                at[1] += count
        return {k: total / problems for k, (total, problems) in sums.items()}


def mean_of(values: Mapping[float, int]) -> float:
    """Return the mean over problems; `values`: value of a problem → how many problems have it."""
    return math.fsum(value * count for value, count in values.items()) / sum(values.values())
