# SPDX-License-Identifier: Apache-2.0
"""Short answers in several languages, of which each weighs alike (TyDi QA: Clark et al. 2020, arXiv:2003.05002, §8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import Scores
from newskills.metrics.counting.corpus import Sums
from newskills.metrics.sections.means import SectionMetric, SectionScore, macro_mean

_NAMES = ("em", "f1")


def _macro_f1(sums: Mapping[str, Sums]) -> float:
    return macro_mean({section: (f1, count) for section, (_, f1, count) in sums.items()})


def _macro_em(sums: Mapping[str, Sums]) -> float:
    return macro_mean({section: (em, count) for section, (em, _, count) in sums.items()})


class AnswerSectionsMetric(SectionMetric):
    """`macro_f1` and `macro_em`: plain means of the sections' `f1` and `em`, without those of `aside`; beside them both
    over all questions."""

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(_NAMES, int | float | None)
    value_fields: ClassVar[tuple[str, ...]] = _NAMES
    headline = ("em",)
    composites: ClassVar[Mapping[str, SectionScore]] = {"macro_f1": _macro_f1, "macro_em": _macro_em}

    def __init__(self, *, section_key: str = "subset_for_metrics", aside: Sequence[str] = ()) -> None:
        super().__init__(section_key=section_key)
        self._aside = frozenset(aside)
        at = self.columns.index("accuracy")
        self.columns = (*self.columns[:at], *_NAMES, *self.columns[at + 1 :])

    def scores(self, record: Row) -> Scores:
        return {name: record.get(name) for name in _NAMES}

    def counts(self, record: Row) -> Sequence[float] | None:
        if self.section(record) in self._aside or any(record.get(name) is None for name in _NAMES):
            return None
        return [*(float(record[name]) for name in _NAMES), 1.0]

    def incorrect(self, prediction: Row) -> Row:
        return super().incorrect(prediction) | {name: 0.0 for name in _NAMES if name in prediction}
