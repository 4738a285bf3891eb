# SPDX-License-Identifier: Apache-2.0
"""Each right answer of a task weighs alike, however frequent it is (LegalBench: Guha et al. 2023, arXiv:2308.11462)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.corpus import Sums
from newskills.metrics.sections.means import SectionMetric, SectionScore, section_means


def balanced_mean(sums: Mapping[str, Sums]) -> float:
    """Return the mean over tasks of the mean over their right answers of how often each is given."""
    tasks: dict[str, list[float]] = {}
    for section, value in section_means(sums).items():
        tasks.setdefault(section.partition("/")[0], []).append(value)
    return 100.0 * math.fsum(math.fsum(values) / len(values) for values in tasks.values()) / len(tasks)


class BalancedMetric(SectionMetric):
    """`balanced_accuracy`: for each section the mean over its right answers, and the mean of the sections."""

    score_fields: ClassVar[Mapping[str, Any]] = {"expected_answer": Any}
    composites: ClassVar[Mapping[str, SectionScore]] = {"balanced_accuracy": balanced_mean}

    def section(self, record: Row) -> str:
        return f"{super().section(record)}/{record['expected_answer']}"
