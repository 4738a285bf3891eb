# SPDX-License-Identifier: Apache-2.0
"""Tasks with a measure each, of which each weighs alike, or each group of them (LongBench, InfiniteBench)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import Scores
from newskills.metrics.sections.balanced import balanced_mean
from newskills.metrics.sections.means import SectionMetric, SectionScore


class LongTextMetric(SectionMetric):
    """`task_mean`: the mean of the tasks' scores, or, with `groups` (name → its tasks), that of the means of groups;
    beside it `score`, over all samples."""

    score_fields: ClassVar[Mapping[str, Any]] = {"score": bool | int | float | None}
    value_fields: ClassVar[tuple[str, ...]] = ("score",)
    headline = ("score",)
    composites: ClassVar[Mapping[str, SectionScore]] = {"task_mean": balanced_mean}

    def __init__(
        self, *, section_key: str = "subset_for_metrics", groups: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        super().__init__(section_key=section_key)
        self._group = {task: group for group, tasks in (groups or {}).items() for task in tasks}
        self.columns = tuple("score" if column == "accuracy" else column for column in self.columns)

    def scores(self, record: Row) -> Scores:
        if "score" in record:
            return {"score": self.value(record)}
        return {}

    def section(self, record: Row) -> str:
        task = super().section(record)
        return f"{self._group.get(task, task)}/{task}"

    def incorrect(self, prediction: Row) -> Row:
        lost_score = {"score": 0.0} if "score" in prediction else {}
        return super().incorrect(prediction) | lost_score
