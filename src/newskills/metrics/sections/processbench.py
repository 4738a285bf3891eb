# SPDX-License-Identifier: Apache-2.0
"""ProcessBench: the first wrong step is found, and right solutions are left alone (Zheng et al. 2025, §4.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.corpus import Sums
from newskills.metrics.sections.means import SectionMetric, SectionScore, section_means

NO_ERROR = "-1"
KINDS = ("error", "correct")


def _by_source(sums: Mapping[str, Sums]) -> dict[str, dict[str, float]]:
    """Return source → kind (error, correct) → accuracy, 0–1."""
    sources: dict[str, dict[str, float]] = {}
    for section, value in section_means(sums).items():
        source, _, kind = section.rpartition("/")
        sources.setdefault(source, {})[kind] = value
    return sources


def mean_f1(sums: Mapping[str, Sums]) -> float | None:
    """Return the mean over sources of the harmonic mean of both accuracies; None where no source has both kinds."""
    values = []
    for accuracies in _by_source(sums).values():
        if set(accuracies) == set(KINDS):
            both = sum(accuracies.values())
            mean = 2 * math.prod(accuracies.values()) / both if both else 0.0
            values.append(mean)
    return _percent_mean(values)


def _mean_of_kind(kind: str, sums: Mapping[str, Sums]) -> float | None:
    return _percent_mean([accuracies[kind] for accuracies in _by_source(sums).values() if kind in accuracies])


def _percent_mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return 100.0 * math.fsum(values) / len(values)


class ProcessBenchMetric(SectionMetric):
    """`f1`, the harmonic mean of `error_accuracy` and `correct_accuracy` of each source, and the mean of sources.

    `error_accuracy`: of solutions with a wrong step, those whose first one is named; `correct_accuracy`: of right
    solutions, those that are said to be right (-1).
    """

    score_fields: ClassVar[Mapping[str, Any]] = {"expected_answer": Any}
    composites: ClassVar[Mapping[str, SectionScore]] = {
        "f1": mean_f1,
        **{f"{kind}_accuracy": partial(_mean_of_kind, kind) for kind in KINDS},
    }

    def section(self, record: Row) -> str:
        kind = KINDS[str(record["expected_answer"]) == NO_ERROR]
        return f"{super().section(record)}/{kind}"
