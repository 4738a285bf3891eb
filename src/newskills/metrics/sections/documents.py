# SPDX-License-Identifier: Apache-2.0
"""Pages of documents: means over pages of edit distances and of the likeness of tables (OmniDocBench)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import Scores
from newskills.metrics.counting.corpus import Sums, mean_or_none
from newskills.metrics.sections.means import SectionMetric, SectionScore

EDITS = ("text_edit", "formula_edit", "table_edit", "reading_order_edit")
MEASURES = (*EDITS, "table_teds")


def measure_mean(name: str, sums: Mapping[str, Sums]) -> float | None:
    """Return the mean of a measure over the pages that have it, in percent."""
    at = 2 * MEASURES.index(name)
    total, count = (math.fsum(values[at + part] for values in sums.values()) for part in (0, 1))
    if not count:
        return None
    return 100.0 * total / count


def overall_edit(sums: Mapping[str, Sums]) -> float | None:
    """Return the mean of the four edit distances, of those that there are."""
    means = [mean for name in EDITS if (mean := measure_mean(name, sums)) is not None]
    return mean_or_none(means)


_MEANS: Mapping[str, Callable[[Mapping[str, Sums]], float | None]] = {
    name: partial(measure_mean, name) for name in MEASURES
}


class DocumentMetric(SectionMetric):
    """`overall_edit`, the mean of four edit distances (lower is better), each of them, and `table_teds` (higher)."""

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(MEASURES, float | int | None)
    composites: ClassVar[Mapping[str, SectionScore]] = {"overall_edit": overall_edit, **_MEANS}

    def __init__(self) -> None:
        super().__init__(answer_key="generation", no_answer=False)
        self.columns = ("num_entries", "avg_tokens", "gen_seconds", *self.composites)
        self.fields = {**self.fields, **self.score_fields}

    def scores(self, record: Row) -> Scores:
        return {}

    def counts(self, record: Row) -> Sequence[float] | None:
        if all(record.get(name) is None for name in MEASURES):
            return None
        values = [record.get(name) for name in MEASURES]
        return [part for value in values for part in (float(value or 0.0), float(value is not None))]

    def incorrect(self, prediction: Row) -> Row:
        wrong = {name: 1.0 for name in EDITS if prediction.get(name) is not None}
        if prediction.get("table_teds") is not None:
            wrong["table_teds"] = 0.0
        return prediction | wrong | {"outcome": "no_answer", "outcome_cause": "truncation"}
