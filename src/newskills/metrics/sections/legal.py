# SPDX-License-Identifier: Apache-2.0
"""LegalBench: the mean over tasks of each task's own figure (Guha et al. 2023, arXiv:2308.11462; evaluation.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.corpus import Sums
from newskills.metrics.sections.means import SectionMetric, SectionScore


def task_mean(sums: Mapping[str, Sums]) -> float:
    """Return the mean over tasks: of labels the mean over right answers of how often each is given; of names F1;
    else the share of right answers.

    Sections are `<task>/<right answer>`; three sums are right, superfluous and missing names.
    """
    tasks: dict[str, list[float]] = {}
    for section, values in sums.items():
        tasks.setdefault(section.partition("/")[0], []).append(_task_figure(values))
    return 100.0 * math.fsum(math.fsum(values) / len(values) for values in tasks.values()) / len(tasks)


def _task_figure(sums: Sums) -> float:
    if len(sums) == 2:
        return sums[0] / sums[1]
    right, superfluous, missing = sums
    if right:
        return 2 * right / (2 * right + superfluous + missing)
    return 0.0


class LegalBenchMetric(SectionMetric):
    """`task_mean`: balanced accuracy, F1 or accuracy of each task, and the mean of the tasks."""

    score_fields: ClassVar[Mapping[str, Any]] = {"label": str, "name_counts": list[int] | None}
    composites: ClassVar[Mapping[str, SectionScore]] = {"task_mean": task_mean}

    def section(self, record: Row) -> str:
        return f"{super().section(record)}/{record['label']}"

    def counts(self, record: Row) -> Sequence[float] | None:
        names = record.get("name_counts")
        if names is None:
            return super().counts(record)
        return [float(number) for number in names]

    def incorrect(self, prediction: Row) -> Row:
        wrong = super().incorrect(prediction)
        if prediction.get("name_counts") is not None:
            count = str(prediction["expected_answer"]).count(",") + 1
            wrong["name_counts"] = [0, count, count]
        return wrong
