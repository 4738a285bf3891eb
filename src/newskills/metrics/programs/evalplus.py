# SPDX-License-Identifier: Apache-2.0
"""Programs judged by tests, the original ones and, where there are any, further ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from newskills.base.records import Row
from newskills.metrics.counting.base import NO_ANSWER, Scores
from newskills.metrics.programs.base import SUSPICIOUS, ProgramMetric

_FIELDS = {"passing_base_tests": "is_correct", "passing_plus_tests": "is_correct-plus"}


class EvalPlusMetric(ProgramMetric):
    """`passing_base_tests`, and `passing_plus_tests` (both kinds of tests passed) where records have it."""

    score_fields: ClassVar[Mapping[str, Any]] = dict.fromkeys(_FIELDS.values(), bool | int | float | None)
    headline = ("passing_plus_tests", "passing_base_tests")
    columns = ("num_entries", "avg_tokens", "gen_seconds", *_FIELDS, NO_ANSWER, SUSPICIOUS)

    def scores(self, record: Row) -> Scores:
        return {name: record[field] for name, field in _FIELDS.items() if field in record}

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {field: False for field in self.score_fields if field in prediction}
        return prediction | wrong | {"outcome": NO_ANSWER, "outcome_cause": "truncation"}
