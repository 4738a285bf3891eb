# SPDX-License-Identifier: Apache-2.0
"""Classes that pass all of their tests, and test classes that do: one for each method, one for the class as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from newskills.base.records import Number, Row
from newskills.metrics.counting.base import NO_ANSWER, Scores, clustered_number, family_values, values_unless_lost
from newskills.metrics.programs.base import SUSPICIOUS, ProgramMetric

_CLASS, _METHOD = "class_success", "method_success"
_FIELD = "test_classes_passed"


class ClassEvalMetric(ProgramMetric):
    """`class_success`: classes with all tests passed; `method_success`: test classes with all tests passed, of all.

    The authors call the second `fun_success`. Test classes of one task are not independent: their interval is that of
    as many units as there are tasks. Over several samples each test class is looked at by itself.
    """

    score_fields: ClassVar[Mapping[str, Any]] = {
        "is_correct": bool | None,
        _FIELD: dict[str, bool] | None,
        "test_classes": list[str] | None,
    }
    headline = (_CLASS,)
    columns = ("num_entries", "avg_tokens", "gen_seconds", _CLASS, _METHOD, NO_ANSWER, SUSPICIOUS)

    def scores(self, record: Row) -> Scores:
        return {_CLASS: record.get("is_correct")}

    def update(self, predictions: Sequence[Row]) -> None:
        super().update(predictions)
        names = dict.fromkeys(name for record in predictions for name in record.get("test_classes") or ())
        for name in names:
            samples = values_unless_lost(predictions, partial(_class_passed, name=name))
            self._tally(_METHOD).add(samples, family_values(samples, [None] * len(samples), [None] * len(samples)))

    def incorrect(self, prediction: Row) -> Row:
        wrong: Row = {"is_correct": False, _FIELD: {}, self.answer_key: None}
        return prediction | wrong | {"outcome": NO_ANSWER, "outcome_cause": "truncation"}

    def numbers(self) -> dict[str, dict[str, Number]]:
        modes = super().numbers()
        for scores in modes.values():
            if _METHOD in scores and _CLASS in scores:
                scores[_METHOD] = clustered_number(scores[_METHOD], scores[_CLASS])
        return modes


def _class_passed(record: Row, name: str) -> bool | None:
    """Return whether an answer has passed `name`; one without code has passed none, and None is unscored."""
    if record.get("is_correct") is None:
        return None
    return bool((record.get(_FIELD) or {}).get(name))
